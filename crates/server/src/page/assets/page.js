// Refreshes a page: the server sends a tick when something changed, and the live regions are
// fetched and replaced. A region with selected text or the focus is left alone until the user is done.
const word = document.getElementById("live");
const button = document.getElementById("hold");
let stream = null;
let held = false;
let busy = false;
let again = false;
let fresh = Date.now();

function say(text, lost) {
  if (word.textContent !== text) word.textContent = text;
  word.classList.toggle("lost", Boolean(lost));
}

function inUse(region) {
  if (region.contains(document.activeElement)) return true;
  const selection = document.getSelection();
  return Boolean(selection) && !selection.isCollapsed && region.contains(selection.anchorNode);
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const path = word.dataset.regions || location.pathname;
    const answer = await fetch(path + location.search, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of next.querySelectorAll("[data-live]")) {
      const old = document.getElementById(region.id);
      if (old && !inUse(old) && old.innerHTML !== region.innerHTML) old.replaceChildren(...region.childNodes);
    }
    fresh = Date.now();
    say(word.dataset.fresh);
  } catch {
    lost();
  }
  setTimeout(() => { busy = false; if (again) { again = false; refresh(); } }, 500);
}

function lost() {
  say(word.dataset.lost + new Date(fresh).toLocaleTimeString(), true);
}

function open() {
  if (stream || held || document.hidden) return;
  stream = new EventSource("/page/ticks");
  stream.addEventListener("tick", refresh);
  stream.addEventListener("open", refresh);
  stream.addEventListener("error", () => {
    lost();
    if (stream && stream.readyState === EventSource.CLOSED) { close(); setTimeout(open, 5000); }
  });
}

function close() {
  if (stream) stream.close();
  stream = null;
}

const pause = button.textContent;
button.hidden = false;
button.addEventListener("click", () => {
  held = !held;
  button.textContent = held ? button.dataset.resume : pause;
  if (held) { close(); say(word.dataset.held + new Date(fresh).toLocaleTimeString()); } else { open(); }
});
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
