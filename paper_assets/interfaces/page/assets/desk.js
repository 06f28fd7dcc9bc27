// Keys, changes in place, undo, and updates from other tabs. Every form also works without this script.
"use strict";

const main = () => document.getElementById("main");
const said = document.getElementById("said");

// Messages. Screen readers take them from #said; readers see a copy in the flow of the page, so that it covers nothing: after
// `near`, else where the eye is. It stays until the next message, key or click. `seen`: the page shows it already, as a
// paper's row shows its rating.
function say(text, fault = false, { near = null, seen = false } = {}) {
  document.querySelectorAll(".message").forEach((each) => each.remove());
  said.classList.remove("first");
  said.textContent = text;
  if (!text || seen) return;
  const message = document.createElement("p");
  message.className = fault ? "message fault" : "message";
  message.setAttribute("aria-hidden", "true");
  message.textContent = text;
  place(message, near);
}

const inWindow = (element) => {
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && top >= 0 && bottom <= innerHeight && element.checkVisibility(); // not within closed details
};

// Put the message in the row where the eye is, or after the first block in the window.
function place(message, near) {
  if (near) return near.after(message);
  const row = rowAtTheEye(), details = row && row.querySelector(":scope > details");
  if (details) details.before(message);
  else if (row) row.append(message);
  if (row && inWindow(message)) return;
  const block = [...main().querySelectorAll("p, h2, h3, details, form, section")].find((each) => each !== message && inWindow(each));
  if (block) block.after(message); // before it, the browser's scroll anchoring would keep the message out of the window
  else main().prepend(message);
}

// The focused paper if it is in the window, else the one in the middle of the window, else the last one above that.
function rowAtTheEye() {
  const shown = papers().filter((each) => {
    const { top, bottom } = each.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  const focused = shown.find((each) => each.contains(document.activeElement));
  return focused || shown.find((each) => each.getBoundingClientRect().bottom > innerHeight / 2) || shown.at(-1) || null;
}

// The message of a loaded page is above its content, or at the paper or section that the address names.
const named = location.hash && document.getElementById(location.hash.slice(1));
if (said.textContent.trim() && named) {
  const text = said.textContent, near = named.querySelector("form.rate") || named.querySelector("h2") || named;
  requestAnimationFrame(() => say(text, false, { near }));
}
const clearMessage = (event) => {
  const modifies = event.ctrlKey || event.metaKey || ["Control", "Meta", "Shift", "Alt"].includes(event.key);
  if (!modifies && document.querySelector(".message")) say("");
};
addEventListener("click", clearMessage, true);
addEventListener("keydown", clearMessage, true);
addEventListener("hashchange", () => { if (said.classList.contains("first")) say(""); });

// A menu closes when the reader does something else.
const menus = ".which details, .gear";
addEventListener("click", (event) => document.querySelectorAll(menus).forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; }));
addEventListener("keydown", (event) => { if (event.key === "Escape") document.querySelectorAll(menus).forEach((menu) => { menu.open = false; }); });

// The browser scrolls to the caret of a field that Tab reaches; show the whole field with its label.
document.addEventListener("keyup", (event) => {
  const field = event.key === "Tab" && document.activeElement.closest(".field");
  if (field) field.scrollIntoView({ block: "nearest" });
});

// A view with work in progress is loaded again; without scripts a <meta> does it.
if (main().dataset.refresh) {
  const [seconds, address] = main().dataset.refresh.split("; url=");
  setTimeout(() => (address ? location.replace(address) : location.reload()), 1000 * Number(seconds));
}

// Back returns to the paper from which the reader left.
const left = `left ${location.pathname}${location.search}`;
addEventListener("pagehide", () => {
  const article = document.activeElement && document.activeElement.closest("article[id]");
  if (article) sessionStorage.setItem(left, article.id);
});
addEventListener("load", () => {
  const article = document.getElementById(sessionStorage.getItem(left) || "");
  if (article && performance.getEntriesByType("navigation")[0].type === "back_forward") select(article);
});

async function fetched(address, options) {
  const answer = await fetch(address, { credentials: "same-origin", ...options });
  const text = await answer.text();
  const html = (answer.headers.get("content-type") || "").includes("html");
  return { ok: answer.ok, status: answer.status, text, page: html ? new DOMParser().parseFromString(text, "text/html") : null };
}

function faultOf({ text, page }) {
  const fault = page && page.getElementById("fault");
  return (fault ? fault.querySelector("p").textContent : text).trim();
}

function fields(form, button) {
  const data = new URLSearchParams(new FormData(form));
  if (button && button.name) data.set(button.name, button.value);
  return data;
}

function focusLike(root, focused) {
  const word = focused.dataset.word;
  const again = (word && root.querySelector(`[data-word="${word}"]`)) || (focused.id && document.getElementById(focused.id));
  (again || root).focus({ preventScroll: true });
}

// Replace one part of the page by the same part of another copy; open details stay open, the focus stays where it was.
function swap(id, page) {
  const before = document.getElementById(id), after = page.getElementById(id);
  if (!before || !after) return false;
  const focused = before.contains(document.activeElement) ? document.activeElement : null;
  const open = [...before.querySelectorAll("details")].map((each) => each.open);
  before.replaceWith(after);
  after.querySelectorAll("details").forEach((each, at) => { if (at < open.length) each.open = open[at]; });
  if (focused) focusLike(after, focused);
  return true;
}

// Ratings. They are sent one after the other, so that an undo never overtakes the rating that it reverts.
const given = []; // the ratings given in this tab: { article, form fields, before, rating }
const unanswered = []; // what is being sent or waits for its turn: { entry, rating, replaced }
let queue = Promise.resolve();

const ratingOf = (article) => article.dataset.rating || "none";

function rate(article, rating) {
  const form = article && article.querySelector("form.rate");
  if (!form) return;
  const entry = { id: article.id, action: form.action, fields: fields(form), before: ratingOf(article), rating };
  given.push(entry);
  article.dataset.rating = rating;
  article.setAttribute("aria-busy", "true");
  showRowFault(article, null);
  enqueue({ entry, rating, replaced: null });
}

function enqueue(request) {
  unanswered.push(request);
  queue = queue.then(() => sendRating(request.entry, request.rating, request.replaced)).finally(() => unanswered.shift());
}

function ratingRequest(entry, rating, replaced = null) {
  const body = new URLSearchParams(entry.fields);
  body.set("rating", rating);
  if (replaced) body.set("replaced", replaced); // nothing is changed where another tab has given a different rating
  return { method: "POST", body, credentials: "same-origin" };
}

// A reader who reloads or leaves the page loses no rating: the browser sends the last one of each paper.
window.addEventListener("pagehide", () => {
  const last = new Map(unanswered.map((request) => [request.entry.id, request]));
  for (const { entry, rating } of last.values()) {
    fetch(entry.action, { ...ratingRequest(entry, rating), keepalive: true }).catch(() => {});
  }
});

// At the paper itself: that its rating was not saved, with a button that sends it again.
function showRowFault(article, message, again) {
  const old = article.querySelector(".row-fault");
  if (old) old.remove();
  if (!message) return;
  const fault = document.createElement("p"), button = document.createElement("button");
  fault.className = "row-fault";
  fault.textContent = `${message} `;
  button.type = "button";
  button.className = "plain";
  button.textContent = "Try again";
  button.addEventListener("click", again);
  fault.append(button);
  article.querySelector("form.rate").after(fault);
}

async function sendRating(entry, rating, replaced = null) {
  const failed = (message) => {
    if (given.includes(entry)) given.splice(given.indexOf(entry), 1);
    const article = document.getElementById(entry.id);
    if (article) {
      article.dataset.rating = entry.before;
      article.removeAttribute("aria-busy");
      showRowFault(article, message, () => rate(article, rating));
    }
    say(message, true, { seen: Boolean(article) && inWindow(article.querySelector(".row-fault")) });
  };
  let answer;
  try {
    answer = await fetched(entry.action, ratingRequest(entry, rating, replaced));
  } catch {
    return failed("Could not save the rating: the desk does not answer. Is `paper-assets start` still running?");
  }
  if (!answer.ok || !answer.page) return failed(`Could not save the rating: ${faultOf(answer)}`);
  const state = answer.page.getElementById("main").dataset.state, note = answer.page.getElementById("said").textContent;
  const inRow = swap(entry.id, answer.page);
  if (inRow) showRatings(answer.page);
  if (!inRow) swap("main", answer.page); // it left the view, or came back to it
  else if (state && main().dataset.state && listPart(state) === listPart(main().dataset.state)) main().dataset.state = state;
  for (const id of ["all-seen", "progress"]) swap(id, answer.page);
  document.title = answer.page.title; // it counts what is unread
  say(note, false, { seen: inRow });
}

// Show ratings of other tabs; those that are being sent from here are newer. Return how many.
function showRatings(page) {
  const other = [...document.querySelectorAll("article[id]:not([aria-busy])")].filter((article) => {
    const fresh = page.getElementById(article.id);
    return fresh && (fresh.dataset.rating || "none") !== ratingOf(article);
  });
  other.forEach((article) => swap(article.id, page));
  return other.length;
}

const listOf = (form) => `${form.getAttribute("action")} ${new FormData(form).getAll("day")}`;

// Revert the latest rating of this tab, also one that is still being sent, and nothing else.
function undo() {
  const last = given.pop(), unseen = document.querySelector('#all-seen button[value="none"]');
  if (!last && unseen && sessionStorage.seen === listOf(unseen.form)) {
    delete sessionStorage.seen;
    return unseen.click();
  }
  if (!last) return say("There is no rating to undo in this tab.");
  const article = document.getElementById(last.id);
  if (article) {
    article.dataset.rating = last.before;
    article.setAttribute("aria-busy", "true");
    select(article);
  }
  enqueue({ entry: { ...last, before: last.rating }, rating: last.before, replaced: last.rating });
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.preview && event.submitter && event.submitter.id === "see") {
    event.preventDefault();
    preview(form);
  } else if (form.id === "all-seen") {
    sessionStorage.seen = event.submitter.value === "all" ? listOf(form) : "";
  } else if (form.matches("form.rate")) {
    event.preventDefault();
    const article = form.closest("article"), word = event.submitter.dataset.word;
    rate(article, word === "none" || ratingOf(article) === word ? "none" : word);
  }
});

// An answer that takes more than a moment: say so at its button, until the page of the answer replaces this one, or the
// reader stops it or stays on a page with unsaved edits.
let awaited = null; // the button, and the timer that dims it

document.addEventListener("submit", (event) => {
  const form = event.target, button = event.submitter;
  if (event.defaultPrevented || !button || form.method === "dialog") return;
  stopAwaiting();
  const timer = setTimeout(() => {
    button.setAttribute("aria-busy", "true");
    say("One moment …", false, { near: button.closest(".line") || form });
  }, 600);
  awaited = { button, timer };
});

function stopAwaiting() {
  if (!awaited) return;
  clearTimeout(awaited.timer);
  if (awaited.button.hasAttribute("aria-busy")) say("");
  awaited.button.removeAttribute("aria-busy");
  awaited = null;
}

if (window.navigation) {
  navigation.addEventListener("navigate", ({ signal }) => {
    const mine = awaited;
    signal.addEventListener("abort", () => { if (mine === awaited) stopAwaiting(); }); // else a later one replaced it
  });
}
addEventListener("pageshow", (event) => { if (event.persisted) stopAwaiting(); }); // by the browser's Back button

// The profile form: a preview shortly after the last key, and a warning before edits are lost.
let waiting, asked = 0, typed = null;

async function preview(form) {
  const turn = ++asked, shown = document.getElementById("preview");
  const near = [...shown.querySelectorAll("h2"), ...form.querySelectorAll(".field:focus-within")].find(inWindow);
  shown.setAttribute("aria-busy", "true");
  try {
    const body = fields(form);
    body.set("typing", "1");
    const answer = await fetched(form.dataset.preview, { method: "POST", body });
    if (turn !== asked) return; // the reader typed on
    const { page } = answer;
    if (answer.status === 503) { // another process writes, as a ranking does
      waiting = setTimeout(() => preview(form), 3000);
      return say("The preview follows when the ranking that is under way has written its result.", false, { near });
    }
    if (!page || page.getElementById("fault")) return say(`Could not make the preview: ${faultOf(answer)}`, true, { near });
    document.getElementById("preview").replaceChildren(...page.getElementById("preview").childNodes);
    showFieldFaults(form, page);
    if (shown.querySelector("[data-again]")) waiting = setTimeout(() => preview(form), 3000); // it has a moving number
  } catch {
    say("Could not make the preview: the desk does not answer.", true, { near });
  } finally {
    if (turn === asked) document.getElementById("preview").removeAttribute("aria-busy");
  }
}

// Show the faults of fields as the answer has them, without touching what is typed.
function showFieldFaults(form, page) {
  for (const field of form.querySelectorAll(".field[data-field]")) {
    const now = page.querySelector(`.field[data-field="${field.dataset.field}"]`);
    const old = field.querySelector(".field-fault"), fault = now && now.querySelector(".field-fault");
    if (old) old.remove();
    if (fault) field.append(fault);
    field.querySelectorAll("input, textarea, select").forEach((input) => {
      const like = now && input.id && now.querySelector(`[id="${input.id}"]`);
      for (const name of ["aria-invalid", "aria-errormessage", "aria-describedby"]) {
        if (like && like.hasAttribute(name)) input.setAttribute(name, like.getAttribute(name));
        else if (like) input.removeAttribute(name);
      }
    });
  }
}

const editForm = () => document.querySelector("form[data-preview]");

function edited() {
  const form = editForm();
  return Boolean(form) && typed !== null && fields(form).toString() !== typed;
}

function showEdited() {
  const note = document.getElementById("unsaved");
  if (note) note.hidden = !edited();
}

function previewSoon(form) {
  showEdited();
  clearTimeout(waiting);
  waiting = setTimeout(() => preview(form), 700);
}

if (editForm()) {
  const sent = editForm().cloneNode(true); // as the desk sent it: on a busy machine a reader types before this script runs
  sent.reset();
  typed = editForm().dataset.refused === "true" ? "" : fields(sent).toString();
  showEdited();
  if (fields(editForm()).toString() !== fields(sent).toString()) previewSoon(editForm());
  window.addEventListener("beforeunload", (event) => { if (edited()) event.preventDefault(); });
  editForm().addEventListener("submit", (event) => {
    if (!event.defaultPrevented && !(event.submitter && event.submitter.id === "see")) typed = null; // it is being saved
  });
  const invalid = document.querySelector("form[data-preview] [aria-invalid]");
  if (invalid) invalid.focus();
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form && form.dataset.preview) previewSoon(form);
});

// Updates: a new ranking or a rewrite that went on replaces the view; ratings of another tab replace their papers.
const listPart = (state) => state.split(" ")[0];

async function watch() {
  const { watch: address, state, word } = main().dataset;
  if (!address || document.hidden) return;
  try {
    await queue;
    const news = await fetched(address), now = news.text.trim();
    if (!news.ok || news.page || now === main().dataset.state) return;
    const { ok, page } = await fetched(location.pathname + location.search);
    if (!ok || !page || !page.getElementById("main")) return;
    if (unanswered.length) return; // a rating given meanwhile is newer than this answer
    const listed = (text) => text.split(" ").slice(0, 2).join(" ");
    if (swap("arrivals", page) && listed(now) === listed(state)) {
      main().dataset.state = now;
      return;
    }
    if (now.includes(" ") && listPart(now) === listPart(state) && document.querySelector("form.rate")) {
      const ids = (root) => [...root.querySelectorAll("article[id]")].map((article) => article.id).join(" ");
      if (ids(document) !== ids(page)) { // a paper came to this view, or left it
        swap("main", page);
        return say("Ratings from another tab are shown.");
      }
      if (showRatings(page)) say("Ratings from another tab are shown.");
      main().dataset.state = page.getElementById("main").dataset.state;
    } else if (swap("main", page)) {
      say(word);
    }
  } catch {
    // the desk is not running; the next turn tries again
  }
}
setInterval(watch, 4000);
document.addEventListener("visibilitychange", watch);

// Keys.
const papers = () => [...document.querySelectorAll("article[id]")]
  .filter((each) => each.querySelector("form.rate") && !each.closest("details:not([open])"));

// The paper that a key is about: the focused one, else the first without a rating.
function current() {
  const focused = document.activeElement && document.activeElement.closest("article[id]");
  return focused || papers().find((each) => ratingOf(each) === "none") || null;
}

function select(article) {
  article.focus({ preventScroll: true });
  const tall = article.offsetHeight > window.innerHeight;
  article.scrollIntoView({ block: tall ? "start" : "nearest" });
}

function move(by) {
  const all = papers(), focused = document.activeElement && document.activeElement.closest("article[id]");
  const at = all.indexOf(focused);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (next) select(next);
}

// Rate the current paper and go to the next one; the same rating again removes it.
function rateByKey(rating) {
  const article = current();
  if (!article) return say(papers().length ? "Every paper here has a rating; choose one with j and k." : "There is no paper to rate here.");
  const all = papers(), next = all[all.indexOf(article) + 1];
  rate(article, ratingOf(article) === rating ? "none" : rating);
  select(next || article);
}

function toggle(kind) {
  const article = current(), found = article && article.querySelector(`details.${kind}`);
  if (!found) return;
  found.open = !found.open;
  for (let outer = found.parentElement.closest("details"); outer && found.open; outer = outer.parentElement.closest("details")) outer.open = true;
  if (found.open && found.getBoundingClientRect().top > innerHeight / 2) found.scrollIntoView({ block: "center" });
}

function openPaper() {
  const link = current() && current().querySelector("a[data-source]");
  if (link) link.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const keys = document.getElementById("keys");
  if (keys && keys.open) {
    if (event.key === "?") { event.preventDefault(); keys.close(); }
    return;
  }
  const rating = { w: "worth", l: "later", n: "no" }[event.key];
  const act = !papers().length && event.key !== "?" ? null : rating ? () => rateByKey(rating) : {
    j: () => move(1),
    k: () => move(-1),
    u: undo,
    a: () => toggle("more"),
    y: () => toggle("why"),
    o: openPaper,
    s: () => { const all = document.querySelector('#all-seen button[value="all"]'); if (all) all.click(); else say("You have seen all of it."); },
    "?": () => { if (keys) keys.showModal(); }, // closing it returns the focus
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-show-keys]"), copy = event.target.closest("[data-copy]");
  if (button) document.getElementById("keys").showModal();
  if (copy) copyText(document.getElementById(copy.dataset.copy), copy.closest("p"));
});

async function copyText(element, near) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    say("Copied.", false, { near });
  } catch {
    getSelection().selectAllChildren(element);
    say("Press Ctrl+C to copy the selected text.", false, { near });
  }
}
