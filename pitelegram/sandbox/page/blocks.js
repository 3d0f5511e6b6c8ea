// The blocks of a rich message become DOM nodes. Text is only ever put in as text.

import { element } from "./format.js";

const TAGS = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  code: "code",
  mathematical_expression: "code",
};
const SAFE_LINK = /^(https?|tg|mailto):/i;
const MAKERS = { paragraph, heading, pre, divider, list, blockquote, table, mathematical_expression: formula };

export function richBody(message) {
  const body = element("div", "rich");
  body.append(...nodes(message.blocks));
  return body;
}

// The words, for a line of preview.
export function wordsOf(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(wordsOf).join(" ");
  if (!value) return "";
  return wordsOf(value.text ?? value.expression ?? value.blocks ?? value.items ?? value.cells ?? "");
}

function nodes(blocks) {
  return blocks.map((block) => (MAKERS[block.type] ?? paragraph)(block));
}

function fill(node, text) {
  if (typeof text === "string") node.append(text);
  else if (Array.isArray(text)) for (const part of text) fill(node, part);
  else if (text) node.append(styled(text));
  return node;
}

function styled(text) {
  const address = text.url ?? (text.email_address && `mailto:${text.email_address}`);
  if (address) {
    const node = element(SAFE_LINK.test(address) ? "a" : "span");
    if (SAFE_LINK.test(address)) {
      node.href = address;
      node.target = "_blank";
      node.rel = "noopener noreferrer";
      node.title = address;
    }
    return fill(node, text.text);
  }
  const node = element(TAGS[text.type] ?? "span", text.type.replaceAll("_", "-"));
  return fill(node, text.expression ?? text.text);
}

function paragraph(block) {
  return fill(element("p"), block.text ?? "");
}

function heading(block) {
  return fill(element(`h${Math.min(6, Math.max(1, block.size))}`), block.text);
}

function pre(block) {
  const figure = element("figure", "code-block");
  figure.append(element("figcaption", "", block.language || "code"));
  figure.append(fill(element("pre"), block.text));
  return figure;
}

function formula(block) {
  return element("code", "mathematical-expression", block.expression);
}

function divider() {
  return element("hr");
}

function list(block) {
  const ordered = block.items.some((item) => item.value !== undefined);
  const node = element(ordered ? "ol" : "ul");
  for (const item of block.items) {
    const entry = element("li");
    if (item.value !== undefined) entry.value = item.value;
    if (item.has_checkbox) {
      const box = element("input");
      box.type = "checkbox";
      box.checked = Boolean(item.is_checked);
      box.disabled = true;
      entry.classList.add("task");
      entry.append(box);
    }
    entry.append(...nodes(item.blocks));
    node.append(entry);
  }
  return node;
}

function blockquote(block) {
  const node = element("blockquote", "blockquote");
  node.append(...nodes(block.blocks));
  return node;
}

function table(block) {
  const frame = element("div", "table");
  const node = element("table");
  for (const cells of block.cells) {
    const row = element("tr");
    for (const cell of cells) {
      const box = fill(element(cell.is_header ? "th" : "td"), cell.text ?? "");
      box.style.textAlign = cell.align;
      row.append(box);
    }
    node.append(row);
  }
  frame.append(node);
  return frame;
}
