// Text and entities become DOM nodes. Text is only ever put in as text.

const TAGS = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  code: "code",
  blockquote: "blockquote",
  expandable_blockquote: "blockquote",
  spoiler: "span",
  pre: "pre",
};
const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"]);
const SAFE_LINK = /^(https?|tg|mailto):/i;

export function element(tag, className = "", text = null) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  return node;
}

// Entity offsets are UTF-16 units, and so are those of JavaScript strings.
export function formatted(text, entities = [], onCommand = () => {}) {
  const sorted = [...entities].sort((a, b) => a.offset - b.offset || b.length - a.length);
  const root = document.createDocumentFragment();
  fill(root, text, 0, text.length, sorted, onCommand);
  return root;
}

function fill(parent, text, start, end, entities, onCommand) {
  let at = start;
  let afterBlock = false;
  for (let i = 0; i < entities.length; i += 1) {
    const entity = entities[i];
    const from = entity.offset;
    const to = Math.min(entity.offset + entity.length, end);
    if (from < at || from >= to) continue;
    const block = BLOCKS.has(entity.type);
    parent.append(between(text.slice(at, from), afterBlock, block));
    const inside = [];
    while (i + 1 < entities.length && entities[i + 1].offset < to) {
      i += 1;
      inside.push(entities[i]);
    }
    const [outer, inner] = wrapper(entity, text.slice(from, to), onCommand);
    fill(inner, text, from, to, inside, onCommand);
    parent.append(outer);
    at = to;
    afterBlock = block;
  }
  parent.append(between(text.slice(at, end), afterBlock, false));
}

// A block begins and ends a line by itself: the line break beside it is not shown twice.
function between(text, afterBlock, beforeBlock) {
  const rest = afterBlock && text.startsWith("\n") ? text.slice(1) : text;
  return beforeBlock && rest.endsWith("\n") ? rest.slice(0, -1) : rest;
}

function wrapper(entity, text, onCommand) {
  if (entity.type === "url") return twice(link(/^[a-z]+:/i.test(text) ? text : `https://${text}`));
  if (entity.type === "text_link") return twice(link(entity.url));
  if (entity.type === "bot_command") {
    const button = element("button", "command");
    button.type = "button";
    button.addEventListener("click", () => onCommand(text));
    return twice(button);
  }
  if (entity.type === "pre") return codeBlock(entity.language, text);
  const node = element(TAGS[entity.type] ?? "span", entity.type.replaceAll("_", "-"));
  if (entity.type === "spoiler") {
    node.addEventListener("click", () => node.classList.add("open"));
  }
  if (entity.type === "expandable_blockquote") {
    node.addEventListener("click", () => node.classList.toggle("open"));
  }
  return twice(node);
}

function twice(node) {
  return [node, node];
}

function link(address) {
  if (!SAFE_LINK.test(address ?? "")) return element("span", "mention");
  const node = element("a");
  node.href = address;
  node.target = "_blank";
  node.rel = "noopener noreferrer";
  node.title = address;
  return node;
}

function codeBlock(language, text) {
  const figure = element("figure", "code-block");
  const caption = element("figcaption", "", language || "code");
  const copy = element("button", "copy", "copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text);
    copy.textContent = "copied";
    setTimeout(() => { copy.textContent = "copy"; }, 1200);
  });
  caption.append(copy);
  const pre = element("pre");
  figure.append(caption, pre);
  return [figure, pre];
}
