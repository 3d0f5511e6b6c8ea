// The page: state, the stream of events, what a person does.

import { avatar, daySeparator, draftNode, messageNode, preview, sameDay, threadRow } from "./view.js";

const TYPING_MS = 5000;
const DRAFT_MS = 30000;
const PRESS_MS = 15000;
const TOAST_MS = 3500;
const NEAR_BOTTOM = 120;
const $ = (id) => document.getElementById(id);

const state = {
  me: { id: 0 },
  bot: { id: 0, first_name: "Sandbox" },
  topics: true,
  threads: new Map(),
  messages: new Map(),
  current: null,
  read: new Map(),
  typing: new Map(),
  writing: new Map(), // Thread: { content, until }: the bot's drafts
  files: [], // what the next message carries
  drafts: new Map(),
  pressed: new Map(),
  about: null, // { message, edits }: what the next message answers, or changes
  missed: 0,
  loaded: false,
};

const context = {
  get me() { return state.me; },
  threadOf: (id) => state.threads.get(id),
  onCommand: (text) => send(text),
  onThread: (id) => open(id),
  onPress: press,
  onReply: (message) => begin({ message, edits: false }),
  onEdit: (message) => begin({ message, edits: true }),
  onReact: (message, emoji) => ask({ action: "react", message_id: message.message_id, emoji }),
};

// --- the stream ---------------------------------------------------------------------------------

function connect() {
  const stream = new EventSource("events");
  stream.addEventListener("snapshot", (event) => take(JSON.parse(event.data)));
  stream.addEventListener("change", (event) => change(JSON.parse(event.data)));
  stream.onopen = () => connection(true);
  stream.onerror = () => {
    connection(false);
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 1000);
  };
}

function connection(up) {
  $("connection").textContent = up ? `@${state.bot.username ?? "bot"}` : "reconnecting…";
  $("app").classList.toggle("offline", !up);
}

function take(snapshot) {
  state.me = snapshot.me;
  state.bot = snapshot.bot;
  state.topics = snapshot.topics_enabled;
  state.threads = new Map(snapshot.threads.map((t) => [t.message_thread_id, t]));
  state.messages = new Map(snapshot.messages.map((m) => [m.message_id, m]));
  if (!state.loaded) {
    for (const id of [null, ...state.threads.keys()]) markRead(id);
    state.loaded = true;
  }
  if (state.current !== null && !state.threads.has(state.current)) state.current = null;
  $("bot-name").textContent = state.bot.first_name;
  connection(true);
  showThreads();
  showChat();
}

const CHANGES = {
  message: ({ message }) => {
    state.messages.set(message.message_id, message);
    if (message.from.id === state.bot.id) {
      state.typing.delete(message.message_thread_id ?? null);
      state.writing.delete(message.message_thread_id ?? null);
      showDraft();
    }
    put(message, true);
  },
  edit: ({ message }) => {
    state.messages.set(message.message_id, message);
    put(message, false);
  },
  reaction: ({ message }) => CHANGES.edit({ message }),
  delete: ({ message_ids: ids }) => {
    for (const id of ids) {
      state.messages.delete(id);
      document.querySelector(`#messages [data-message-id="${id}"]`)?.remove();
      if (state.about?.message.message_id === id) begin(null);
    }
    showEmpty();
  },
  thread: ({ thread }) => {
    const known = state.threads.has(thread.message_thread_id);
    state.threads.set(thread.message_thread_id, thread);
    if (known && thread.message_thread_id === state.current) showHeader();
    if (state.wanted === thread.message_thread_id) open(state.wanted);
  },
  thread_deleted: ({ thread_id: id }) => {
    state.threads.delete(id);
    if (state.current === id) open(null);
  },
  action: ({ thread_id: id, action }) => {
    const key = id ?? null;
    const until = Date.now() + TYPING_MS;
    state.typing.set(key, { action, until });
    setTimeout(() => {
      if (state.typing.get(key)?.until === until) {
        state.typing.delete(key);
        showTyping();
        showThreads();
      }
    }, TYPING_MS);
  },
  draft: ({ thread_id: id, content }) => {
    const key = id ?? null;
    const until = Date.now() + DRAFT_MS;
    state.writing.set(key, { content, until });
    setTimeout(() => {
      if (state.writing.get(key)?.until === until) state.writing.delete(key);
      showDraft();
    }, DRAFT_MS);
    showDraft();
  },
  answer: ({ callback_id: id, text, show_alert: alert }) => {
    release(id);
    if (text && alert) {
      $("alert-text").textContent = text;
      if (!$("alert").open) $("alert").showModal();
    } else if (text) {
      toast(text);
    }
  },
  mode: ({ topics_enabled: topics }) => {
    state.topics = topics;
    showChat();
  },
};

function change(event) {
  CHANGES[event.event]?.(event);
  showThreads();
  showTyping();
}

// --- what is shown ------------------------------------------------------------------------------

function belongs(message) {
  return state.current === null || (message.message_thread_id ?? null) === state.current;
}

function ofThread(id) {
  return [...state.messages.values()].filter(
    (m) => id === null || (m.message_thread_id ?? null) === id,
  );
}

function markRead(id) {
  const last = ofThread(id).reduce((most, m) => Math.max(most, m.message_id), 0);
  state.read.set(id, Math.max(last, state.read.get(id) ?? 0));
}

function unread(id) {
  if (id === null) return 0;
  const upTo = state.read.get(id) ?? 0;
  return ofThread(id).filter(
    (m) => m.message_id > upTo && !m.service && m.from.id !== state.me.id,
  ).length;
}

function showThreads() {
  if (isLooking()) markRead(state.current);
  const threads = [...state.threads.values()].map(
    (t) => ({ ...described(t.message_thread_id, t.name, t.icon_color), closed: t.closed }),
  );
  threads.sort((a, b) => (b.last?.message_id ?? 0) - (a.last?.message_id ?? 0));
  $("threads").replaceChildren(...[described(null, "All", null), ...threads].map((row) => {
    const node = threadRow(row);
    node.addEventListener("click", () => open(row.id));
    return node;
  }));
  const sum = threads.reduce((total, row) => total + row.unread, 0);
  document.title = sum ? `(${sum}) Sandbox Telegram` : "Sandbox Telegram";
}

function described(id, name, color) {
  const last = ofThread(id).reduce((a, b) => (a && a.message_id > b.message_id ? a : b), null);
  const typing = id !== null && state.typing.has(id);
  return { id, name, color, last, typing, unread: unread(id), current: id === state.current };
}

function isLooking() {
  const visible = document.visibilityState === "visible";
  const chatShown = $("app").dataset.pane === "chat" || innerWidth > 720;
  return visible && chatShown && isNearBottom();
}

function showHeader() {
  const thread = state.threads.get(state.current);
  $("chat-name").textContent = thread?.name ?? "All";
  avatar($("chat-avatar"), thread?.name ?? "≡", thread?.icon_color ?? null);
  $("chat-avatar").classList.toggle("all", !thread);
  $("rename").hidden = $("remove").hidden = $("shut").hidden = !thread;
  $("shut").textContent = thread?.closed ? "🔓" : "🔒";
  $("shut").title = thread?.closed ? "Open this Thread again" : "Close this Thread";
  $("shut").setAttribute("aria-label", $("shut").title);
  $("shut-note").hidden = !thread?.closed;
  $("composer").hidden = Boolean(thread?.closed);
  showWhere();
}

// In All plain text opens a Thread, as in today's clients; older ones leave it outside.
function showWhere() {
  const choice = state.current === null && state.topics;
  $("outside-box").hidden = !choice;
  const opens = choice && !$("outside").checked;
  $("text").placeholder = opens ? "Message — plain text opens a Thread" : "Message";
}

function showChat() {
  showHeader();
  const shown = ofThread(state.current).sort((a, b) => a.message_id - b.message_id);
  const nodes = [];
  shown.forEach((message, i) => {
    if (!sameDay(shown[i - 1], message)) nodes.push(daySeparator(message));
    nodes.push(messageNode(message, context, state.current === null));
  });
  $("messages").replaceChildren(...nodes);
  showDraft();
  showEmpty();
  showTyping();
  toBottom();
}

function showEmpty() {
  const empty = !ofThread(state.current).some((m) => !m.service);
  $("empty").hidden = !empty;
  $("empty").textContent = state.current === null
    ? "Nothing here yet. Try /daemon, or write something."
    : "Write the first message of this Thread.";
}

function put(message, isNew) {
  if (!belongs(message)) return;
  const follow = isNearBottom() || (isNew && message.from.id === state.me.id);
  const node = messageNode(message, context, state.current === null);
  const old = document.querySelector(`#messages [data-message-id="${message.message_id}"]`);
  if (old) {
    old.replaceWith(node);
  } else if (isNew) {
    const before = state.messages.get(Number($("messages").lastElementChild?.dataset.messageId));
    if (!sameDay(before, message)) $("messages").append(daySeparator(message));
    node.classList.add("fresh");
    $("messages").append(node);
  }
  showEmpty();
  if (follow) toBottom();
  else if (isNew) showDown(state.missed + 1);
}

function isNearBottom() {
  const box = $("scroller");
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_BOTTOM;
}

function toBottom() {
  $("scroller").scrollTop = $("scroller").scrollHeight;
  showDown(0);
}

function showDown(missed) {
  state.missed = missed;
  $("down").hidden = isNearBottom();
  $("down").dataset.missed = missed || "";
}

function showTyping() {
  const busy = state.typing.get(state.current);
  const wasNear = isNearBottom();
  $("typing").hidden = !busy;
  $("chat-state").textContent = busy ? busy.action.replaceAll("_", " ") + "…" : "bot";
  $("chat-state").classList.toggle("busy", Boolean(busy));
  if (busy && wasNear) toBottom();
}

function showDraft() {
  const follow = isNearBottom();
  const draft = state.writing.get(state.current);
  $("draft").replaceChildren(...(draft ? [draftNode(draft.content, context)] : []));
  if (draft && follow) toBottom();
}

function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { $("toast").hidden = true; }, TOAST_MS);
}

// --- what a person does -------------------------------------------------------------------------

async function ask(order) {
  const response = await fetch("do", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(order),
  }).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (!answer?.ok) toast(answer?.error ?? "No connection to the sandbox");
  return answer?.ok ? answer.result ?? {} : null;
}

function open(id) {
  if (state.about) begin(null);
  state.drafts.set(state.current, $("text").value);
  state.current = id;
  state.wanted = undefined;
  $("app").dataset.pane = "chat";
  $("text").value = state.drafts.get(id) ?? "";
  showChat();
  showThreads();
  grow();
  if (matchMedia("(hover: hover)").matches) $("text").focus();
}

// Reply to a message or change one's own; null: neither.
function begin(about) {
  if (state.about?.edits) $("text").value = "";
  state.about = about;
  $("about").hidden = !about;
  if (about) {
    const whose = about.edits ? "Edit" : `Reply to ${about.message.from.first_name}`;
    $("about-text").textContent = `${whose}: ${preview(about.message)}`;
    if (about.edits) $("text").value = about.message.text;
    $("text").focus();
  }
  grow();
}

async function say(text) {
  const about = state.about;
  if (!about?.edits) return send(text, about?.message.message_id);
  return ask({ action: "edit", text, message_id: about.message.message_id });
}

async function send(text, replyTo) {
  const thread = state.current;
  const order = { action: "send", text, thread };
  if (thread === null && $("outside").checked) order.outside = true;
  if (replyTo !== undefined) order.reply_to = replyTo;
  const sent = await ask(order);
  if (sent && thread === null && replyTo === undefined && sent.thread_id !== null) {
    if (state.threads.has(sent.thread_id)) open(sent.thread_id);
    else state.wanted = sent.thread_id;
  }
  return sent;
}

async function press(message, button, node) {
  if (button.copy_text) {
    await navigator.clipboard?.writeText(button.copy_text.text);
    toast("Copied");
    return;
  }
  if (!button.callback_data || node.classList.contains("waiting")) return;
  node.classList.add("waiting");
  const order = { action: "press", message_id: message.message_id, data: button.callback_data };
  const pressed = await ask(order);
  if (!pressed) {
    node.classList.remove("waiting");
  } else if (early.delete(pressed.callback_id)) {
    node.classList.remove("waiting");
  } else {
    const timer = setTimeout(() => release(pressed.callback_id), PRESS_MS);
    state.pressed.set(pressed.callback_id, { node, timer });
  }
}

const early = new Set(); // answers that came before the press itself was confirmed

function release(callbackId) {
  const entry = state.pressed.get(callbackId);
  if (!entry) {
    early.add(callbackId);
    return;
  }
  clearTimeout(entry.timer);
  entry.node.classList.remove("waiting");
  state.pressed.delete(callbackId);
}

function grow() {
  const box = $("text");
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 180)}px`;
  $("send").disabled = !box.value.trim() && !state.files.length;
}

// --- files: several in one message are an album -------------------------------------------------

function choose(files) {
  state.files = [...files];
  $("files").hidden = !state.files.length;
  $("files-text").textContent = state.files.map((file) => file.name).join(", ");
  $("file").value = "";
  grow();
}

function encoded(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

// Photos are shown as photos, recordings are voice notes; the rest is sent as it is.
function kindOf(file) {
  if (/^image\/(png|jpeg)$/.test(file.type)) return "photo";
  if (/^audio\/ogg/.test(file.type) || /\.(oga|ogg|opus)$/i.test(file.name)) return "voice";
  return "document";
}

async function sendFiles(caption) {
  const { files } = state;
  choose([]);
  const kinds = new Set(files.map(kindOf));
  const kind = kinds.size > 1 ? "document" : [...kinds][0];
  const album = files.length > 1 ? `page-${Date.now()}` : "";
  let thread = state.current;
  for (const [number, file] of files.entries()) {
    const order = {
      action: "send_file",
      kind,
      base64: await encoded(file),
      name: file.name,
      mime_type: file.type || "application/octet-stream",
      text: number === 0 ? caption : "",
      thread,
      album,
    };
    const sent = await ask(order);
    if (!sent) return false;
    thread = sent.thread_id;
  }
  return true;
}

async function submit(event) {
  event?.preventDefault();
  const text = $("text").value.trim();
  if (state.files.length) {
    $("text").value = "";
    if (!(await sendFiles(text))) $("text").value = text;
    grow();
    return;
  }
  if (!text) return;
  $("text").value = "";
  grow();
  if (await say(text)) {
    begin(null);
  } else if (!$("text").value) {
    $("text").value = text;
    grow();
  }
}

// Ask for a name; with none asked for, whether to go on.
function naming(what, done, name) {
  const box = $("naming");
  $("naming-what").textContent = what;
  $("naming-done").textContent = done;
  $("name").hidden = name === null;
  $("name").required = name !== null;
  $("name").value = name ?? "";
  box.returnValue = "";
  box.showModal();
  return new Promise((resolve) => {
    box.onclose = () => resolve(box.returnValue === "done" ? name === null || $("name").value.trim() : null);
  });
}

async function newThread() {
  const name = await naming("Name of the new Thread", "Create", "");
  const made = name && (await ask({ action: "create_thread", name }));
  if (!made) return;
  if (state.threads.has(made.thread_id)) open(made.thread_id);
  else state.wanted = made.thread_id;
}

async function rename() {
  const thread = state.current;
  const name = await naming("New name of this Thread", "Rename", state.threads.get(thread).name);
  if (name) await ask({ action: "rename_thread", thread, name });
}

async function shut() {
  const thread = state.current;
  const action = state.threads.get(thread).closed ? "reopen_thread" : "close_thread";
  await ask({ action, thread });
}

async function remove() {
  const thread = state.current;
  const { name } = state.threads.get(thread);
  const sure = await naming(`Delete “${name}” with all its messages? The bot is not told.`, "Delete", null);
  if (sure) await ask({ action: "delete_thread", thread });
}

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
}

const stored = localStorage.getItem("theme");
if (stored) document.documentElement.dataset.theme = stored;
$("composer").addEventListener("submit", submit);
$("text").addEventListener("input", grow);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
$("about-stop").addEventListener("click", () => begin(null));
$("attach").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => choose($("file").files));
$("files-stop").addEventListener("click", () => choose([]));
$("new-thread").addEventListener("click", newThread);
$("rename").addEventListener("click", rename);
$("shut").addEventListener("click", shut);
$("open-again").addEventListener("click", shut);
$("outside").addEventListener("change", showWhere);
$("remove").addEventListener("click", remove);
$("theme").addEventListener("click", switchTheme);
$("back").addEventListener("click", () => { $("app").dataset.pane = "list"; });
$("down").addEventListener("click", toBottom);
$("scroller").addEventListener("scroll", () => {
  showDown(isNearBottom() ? 0 : state.missed);
  if (isNearBottom()) showThreads();
});
document.addEventListener("visibilitychange", showThreads);
connect();
