// Keys, changes in place, and watching for news. Every form works without it; nothing here knows a rule.
"use strict";

const main = () => document.getElementById("main");
const said = document.getElementById("said");
const undone = []; // the reader's last words: [the paper's article, the word before]

function say(text, fault = false) {
  said.classList.toggle("fault", fault);
  said.textContent = text;
}

async function fetched(address, options) {
  const answer = await fetch(address, { credentials: "same-origin", ...options });
  const text = await answer.text();
  const html = (answer.headers.get("content-type") || "").includes("html");
  return { ok: answer.ok, text, page: html ? new DOMParser().parseFromString(text, "text/html") : null };
}

function fields(form, button) {
  const data = new URLSearchParams(new FormData(form));
  if (button && button.name) data.set(button.name, button.value);
  return data;
}

function focusLike(root, focused) {
  if (!focused) return;
  const word = focused.dataset.word;
  const again = (word && root.querySelector(`[data-word="${word}"]`)) || (focused.id && document.getElementById(focused.id));
  (again || root).focus({ preventScroll: true });
}

function swap(id, page) {
  const before = document.getElementById(id), after = page.getElementById(id);
  if (!before || !after) return false;
  const focused = before.contains(document.activeElement) ? document.activeElement : null;
  const open = [...before.querySelectorAll("details")].map((each) => each.open);
  before.replaceWith(after);
  after.querySelectorAll("details").forEach((each, at) => { each.open = each.open || Boolean(open[at]); });
  focusLike(after, focused);
  return true;
}

// A form that changes something: sent without leaving the page, the part that it is about is put in anew.
async function send(form, button) {
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((each) => each.setAttribute("aria-disabled", "true"));
  try {
    const { ok, text, page } = await fetched(form.action, { method: "POST", body: fields(form, button) });
    if (!ok) return say(page ? page.getElementById("fault").textContent.trim() : text, true);
    swap(form.dataset.inPlace, page);
    say(page.getElementById("said").textContent);
  } catch {
    say("The desk does not answer; nothing was changed. Is `paper-assets desk` still running?", true);
  } finally {
    buttons.forEach((each) => each.removeAttribute("aria-disabled"));
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.preview && event.submitter && event.submitter.id === "see") {
    event.preventDefault();
    preview(form);
  } else if (form.dataset.inPlace) {
    event.preventDefault();
    if (event.submitter && event.submitter.getAttribute("aria-disabled")) return;
    const pressed = form.querySelector('[aria-pressed="true"]');
    undone.push([form.dataset.inPlace, pressed ? pressed.dataset.word : "none"]);
    send(form, event.submitter);
  }
});

// The profile: what would change, a moment after the last key.
let waiting, asked = 0;

async function preview(form) {
  const turn = ++asked, shown = document.getElementById("preview");
  shown.setAttribute("aria-busy", "true");
  try {
    const { text, page } = await fetched(form.dataset.preview, { method: "POST", body: fields(form) });
    if (turn !== asked) return; // somebody typed on
    if (!page) return say(text, true);
    const fault = page.getElementById("fault");
    if (fault) return say(fault.textContent.trim(), true);
    document.getElementById("preview").replaceChildren(...page.getElementById("preview").childNodes);
  } catch {
    say("The desk does not answer, so there is no preview.", true);
  } finally {
    if (turn === asked) document.getElementById("preview").removeAttribute("aria-busy");
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form || !form.dataset.preview) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => preview(form), 700);
});

// News: a list that was ranked again, a rewrite that went on, is put in by itself.
async function watch() {
  const { watch: address, state, word } = main().dataset;
  if (!address || document.hidden) return;
  try {
    const news = await fetched(address);
    if (!news.ok || news.page || news.text.trim() === state) return;
    const { ok, page } = await fetched(location.pathname + location.search);
    if (ok && page && swap("main", page)) say(word);
  } catch {
    // the desk was closed; it is asked again
  }
}
setInterval(watch, 3000);

// Keys.
function papers() {
  return [...document.querySelectorAll("article[id]")];
}

function current() {
  const focused = document.activeElement && document.activeElement.closest("article[id]");
  return focused || null;
}

function move(by) {
  const all = papers(), at = all.indexOf(current());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (next) { next.focus(); next.scrollIntoView({ block: "start" }); }
}

function press(article, word) {
  const button = article && article.querySelector(`button[data-word="${word}"]`);
  if (button) button.form.requestSubmit(button);
}

function toggle(article, kind) {
  const details = article && article.querySelector(`details.${kind}`);
  if (details) details.open = !details.open;
}

function undo() {
  const [id, word] = undone.pop() || [];
  const article = id && document.getElementById(id);
  if (!article) return;
  article.focus();
  press(article, word);
  undone.pop(); // the undoing is no word of its own
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const rating = { w: "worth", l: "later", n: "no" }[event.key];
  const act = rating ? () => press(current(), rating) : {
    j: () => move(1),
    k: () => move(-1),
    u: undo,
    a: () => toggle(current(), "abstract"),
    y: () => toggle(current(), "why"),
    o: () => { const link = current() && current().querySelector("h2 a"); if (link) link.click(); },
    "?": () => { const keys = document.getElementById("keys"); if (keys) { keys.open = !keys.open; keys.scrollIntoView(); } },
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
