// Send the desk, and no other host, which papers are opened or cited here. Where the profile has
// ranking.learn_from_reading: false, the desk keeps nothing.
"use strict";

const kindOf = (link) =>
  /\/(abs|content)\/|\/abs\b/.test(link.pathname) ? "abstract" : /\/(pdf|html)\//.test(link.pathname) ? "full text" : null;

function signal(article, kind) {
  const address = document.getElementById("main").dataset.signals, form = article && article.querySelector("form.rate");
  if (!address || !form || !kind) return;
  const body = new URLSearchParams({ token: form.elements.token.value, paper: form.elements.paper.value, kind });
  fetch(address, { method: "POST", body, credentials: "same-origin", keepalive: true }).catch(() => {});
}

for (const event of ["click", "auxclick"]) {
  document.addEventListener(event, (click) => {
    const link = click.target.closest("a[href]"), copied = click.target.closest("[data-citation]");
    if (copied) signal(copied.closest("article"), "citation");
    else if (link && link.host !== location.host) signal(link.closest("article"), kindOf(link));
  });
}
