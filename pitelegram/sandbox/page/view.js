// DOM for Threads and messages.

import { richBody, wordsOf } from "./blocks.js";
import { element, formatted } from "./format.js";

const IMAGE_KINDS = ["photo"];
const REACTIONS = ["👍", "⚡", "❤", "🔥", "👎", "👻", "💔", "💩"];
const FILE_KINDS = ["document", "audio", "voice", "video"];
const PLAYERS = { audio: "audio", voice: "audio", video: "video" };

export function avatar(node, name, color) {
  const [first] = [...(name.trim() || "#")];
  node.textContent = first.toUpperCase();
  node.classList.toggle("emoji", /\p{Extended_Pictographic}/u.test(first));
  node.style.backgroundColor = color === null ? "" : `#${color.toString(16).padStart(6, "0")}`;
}

export function time(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function day(seconds) {
  const options = { weekday: "long", day: "numeric", month: "long" };
  return new Date(seconds * 1000).toLocaleDateString([], options);
}

export function preview(message) {
  if (!message) return "";
  const rich = message.rich_message && wordsOf(message.rich_message.blocks);
  const said = serviceText(message) ?? message.text ?? message.caption ?? rich;
  const kind = [...IMAGE_KINDS, ...FILE_KINDS].find((name) => message[name]);
  return (said || (kind ? `[${kind}]` : "")).replace(/\s+/g, " ").slice(0, 90);
}

export function threadRow({ id, name, color, closed, last, unread, typing, current }) {
  const row = element("button", "thread");
  row.type = "button";
  row.dataset.threadId = id ?? "all";
  row.classList.toggle("closed", Boolean(closed));
  if (current) row.setAttribute("aria-current", "true");
  const icon = element("span", "avatar");
  avatar(icon, id === null ? "≡" : name, color);
  if (id === null) icon.classList.add("all");
  const middle = element("span", "middle");
  const top = element("span", "top");
  top.append(element("strong", "", name), element("time", "", last ? time(last.date) : ""));
  const bottom = element("span", "bottom");
  bottom.append(element("span", typing ? "line busy" : "line", typing ? "typing…" : preview(last)));
  if (unread) bottom.append(element("span", "badge", String(unread)));
  middle.append(top, bottom);
  row.append(icon, middle);
  return row;
}

export function daySeparator(message) {
  return element("li", "day", day(message.date));
}

export function sameDay(a, b) {
  return a && b && new Date(a.date * 1000).toDateString() === new Date(b.date * 1000).toDateString();
}

function serviceText(message) {
  if (message.forum_topic_created) return `“${message.forum_topic_created.name}” was created`;
  if (message.forum_topic_edited?.name) return `The Thread is now “${message.forum_topic_edited.name}”`;
  if (message.forum_topic_edited) return "The Thread has a new icon";
  if (message.forum_topic_closed) return "The Thread was closed";
  if (message.forum_topic_reopened) return "The Thread was opened again";
  if (message.pinned_message) return "A message was pinned";
  return message.service ? "Something changed" : null;
}

// `context`: me, threadOf(id), onCommand(text), onPress(message, button, node), onThread(id),
// onReply(message), onEdit(message), onReact(message, emoji)
export function messageNode(message, context, showThread) {
  const item = element("li", "message");
  item.dataset.messageId = message.message_id;
  const said = serviceText(message);
  if (said !== null) {
    item.classList.add("service");
    item.append(element("span", "", said));
    return item;
  }
  item.classList.add(message.from.id === context.me.id ? "mine" : "theirs");
  const bubble = element("div", "bubble");
  const thread = showThread ? context.threadOf(message.message_thread_id) : null;
  if (thread) bubble.append(threadChip(thread, context));
  if (message.reply_to_message) bubble.append(quoted(message.reply_to_message));
  bubble.append(...attachments(message));
  bubble.append(...bodies(message, context));
  bubble.append(footer(message, context));
  item.append(bubble);
  if (message.reply_markup?.inline_keyboard) item.append(keyboard(message, context));
  return item;
}

// What the bot is still writing: it has no id, no footer, and goes with the next message.
export function draftNode(content, context) {
  const item = element("li", "message theirs draft");
  const bubble = element("div", "bubble");
  const shown = bodies(content, context);
  bubble.append(...(shown.length ? shown : [element("div", "text", "Thinking…")]));
  item.append(bubble);
  return item;
}

function bodies(message, context) {
  if (message.rich_message) return [richBody(message.rich_message)];
  const text = message.text ?? message.caption;
  if (!text) return [];
  const body = element("div", "text");
  body.append(formatted(text, message.entities ?? message.caption_entities, context.onCommand));
  return [body];
}

function threadChip(thread, context) {
  const chip = element("button", "chip", thread.name);
  chip.type = "button";
  chip.addEventListener("click", () => context.onThread(thread.message_thread_id));
  return chip;
}

function quoted(message) {
  const quote = element("div", "reply");
  quote.append(element("strong", "", message.from.first_name), element("span", "", preview(message)));
  return quote;
}

function attachments(message) {
  const nodes = [];
  if (message.photo) {
    const image = element("img", "photo");
    const largest = message.photo[message.photo.length - 1];
    image.src = `media/${encodeURIComponent(largest.file_id)}`;
    image.alt = message.caption ?? "Photo";
    nodes.push(image);
  }
  for (const kind of FILE_KINDS) {
    if (!message[kind]) continue;
    if (PLAYERS[kind]) nodes.push(player(kind, message[kind]));
    const file = element("a", "file");
    file.href = `media/${encodeURIComponent(message[kind].file_id)}`;
    file.download = message[kind].file_name ?? kind;
    const size = element("small", "", `${Math.ceil((message[kind].file_size ?? 0) / 1024)} kB`);
    file.append(element("span", "", message[kind].file_name ?? kind), size);
    nodes.push(file);
  }
  return nodes;
}

// The link below it stays: a browser cannot play everything.
function player(kind, file) {
  const node = element(PLAYERS[kind], `player ${kind}`);
  node.controls = true;
  node.preload = "metadata";
  node.src = `media/${encodeURIComponent(file.file_id)}`;
  return node;
}

function footer(message, context) {
  const foot = element("div", "foot");
  foot.append(act("↩", "Reply", () => context.onReply(message)));
  if (message.from.id === context.me.id && message.text) {
    foot.append(act("✎", "Edit", () => context.onEdit(message)));
  }
  foot.append(act("☺", "React", () => foot.replaceWith(reactions(message, context, foot))));
  for (const reaction of message.reactions ?? []) {
    foot.append(element("span", "reaction", reaction.emoji ?? "★"));
  }
  if (message.edit_date) foot.append(element("span", "edited", "edited"));
  foot.append(element("time", "", time(message.date)));
  return foot;
}

// Telegram's own choice has many more; these are those that mean something to a worker's queue.
function reactions(message, context, foot) {
  const bar = element("div", "foot choice");
  for (const emoji of REACTIONS) bar.append(act(emoji, emoji, () => context.onReact(message, emoji)));
  bar.append(act("∅", "No reaction", () => context.onReact(message, "")));
  bar.append(act("×", "Never mind", () => bar.replaceWith(foot)));
  return bar;
}

function act(sign, name, work) {
  const node = element("button", "act", sign);
  node.type = "button";
  node.title = name;
  node.setAttribute("aria-label", name);
  node.addEventListener("click", work);
  return node;
}

function keyboard(message, context) {
  const board = element("div", "keyboard");
  for (const buttons of message.reply_markup.inline_keyboard) {
    const row = element("div", "row");
    for (const button of buttons) row.append(keyboardButton(message, button, context));
    board.append(row);
  }
  return board;
}

function keyboardButton(message, button, context) {
  if (button.url) {
    const anchor = element("a", "key link", button.text);
    if (/^(https?|tg):/i.test(button.url)) anchor.href = button.url;
    anchor.target = "_blank";
    anchor.rel = "noopener noreferrer";
    return anchor;
  }
  const node = element("button", "key", button.text);
  node.type = "button";
  if (button.style) node.dataset.style = button.style;
  node.addEventListener("click", () => context.onPress(message, button, node));
  return node;
}
