// The start page: who is signed in, the live log, the publish form, copy buttons.
// Whatever comes from the network goes into textContent, never into markup.

import { Session } from "./session.js";
import { Stream, discover } from "./stream.js";

const $ = (id) => document.getElementById(id);
const { session: sessionURL, resource, pattern, login } = $("main").dataset;
const maxEntries = 200;
const maxShown = 20_000; // characters of one event's data

// --- Who ---------------------------------------------------------------------------------------------------------

const session = new Session({ url: sessionURL });
const anonymousText = $("who").textContent;
let ticker = 0;

function showSession() {
  const { active, renewable, sub, username, ended } = session.state;
  const here = active || renewable;
  const name = username ?? sub ?? "somebody";
  if (active) say($("who"), `Signed in as ${name}.`);
  else if (here) say($("who"), `Signed in as ${name}. The sign-in is being renewed…`);
  else say($("who"), { "signed-out": "Signed out.", expired: "Your sign-in has ended." }[ended] ?? anonymousText);
  $("logout").hidden = !here;
  $("login").hidden = here && renewable;
  $("login").textContent = here || ended ? "Sign in again" : "Sign in";
  $("login").classList.toggle("primary", !here);
  clearInterval(ticker);
  if (active) ticker = setInterval(tick, 1_000);
  tick();
}

function tick() {
  const { active, renewable, trouble } = session.state;
  $("countdown").hidden = !active;
  if (!active) return;
  if (trouble) $("countdown").textContent = `Renewing does not work at the moment. Trying again; ${duration(session.left)} left.`;
  else if (renewable) $("countdown").textContent = `Renewed by itself in ${duration(session.due)}.`;
  else $("countdown").textContent = `${duration(session.left)} left. Sign in again to go on reading private updates.`;
}

function duration(milliseconds) {
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

async function signOut() {
  $("logout").disabled = true;
  try {
    const told = await session.signOut();
    if (!told) say($("who"), "Signed out in this browser. The sign-in service could not be told.");
    $("login").focus();
  } catch (error) {
    say($("who"), `You are still signed in: ${error.message}. Try again.`);
  } finally {
    $("logout").disabled = false;
  }
}

session.addEventListener("change", showSession);
$("logout").addEventListener("click", signOut);

// say changes a status only when it says something new, so that screen readers do not repeat it.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// --- Live log ----------------------------------------------------------------------------------------------------

const log = $("log");
const published = new Map(); // id -> {topic, private} of what this page sent
const rows = new Map(); // id -> element
let paused = false;
let flushing = 0;
const waiting = []; // not shown yet; beyond maxEntries the oldest are dropped, as the log itself does

// receive takes an event. Events are shown in batches: a burst then costs one layout, and one announcement.
function receive(message) {
  waiting.push({ id: message.lastEventId, data: message.data, at: new Date() });
  if (waiting.length > maxEntries) waiting.shift();
  if (paused) $("pause").textContent = `Resume (${waiting.length} waiting)`;
  else flushing ||= setTimeout(flush, 100);
}

function flush() {
  flushing = 0;
  if (paused) return;
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  for (const entry of waiting.splice(0)) show(entry);
  $("empty").hidden = true;
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function show(entry) {
  const row = element("div", "event");
  const head = element("p", "event-head");
  const time = element("time", "", entry.at.toLocaleTimeString());
  time.dateTime = entry.at.toISOString();
  head.append(time, " ", element("span", "topic", hint(entry)));
  const id = element("code", "id wrap", entry.id || "no id");
  id.title = "event id";
  row.append(head, element("pre", "data", shorten(entry.data)), id);
  log.append(row);
  if (entry.id) {
    rows.set(entry.id, row);
    mark(entry.id);
  }
  while (log.childElementCount > maxEntries) {
    const oldest = log.firstElementChild;
    for (const [key, value] of rows) if (value === oldest) rows.delete(key);
    oldest.remove();
  }
}

// hint says what an event is about. An event does not carry its topics, so this is what the page published itself, or
// what the data says.
function hint(entry) {
  const own = published.get(entry.id);
  if (own) return own.topic;
  try {
    const { "@id": id, topic } = JSON.parse(entry.data) ?? {};
    for (const name of [id, topic]) if (typeof name === "string") return shorten(name, 200);
  } catch {
    // Data need not be JSON.
  }
  return "";
}

// mark adds to a row what is only known once both the event and the answer to its publication are here.
function mark(id) {
  const own = published.get(id);
  const row = rows.get(id);
  if (!own || !row || row.dataset.own) return;
  row.dataset.own = "yes";
  row.querySelector(".topic").textContent = own.topic;
  const head = row.querySelector(".event-head");
  if (own.private) head.append(" ", element("span", "badge private", "private"));
  head.append(" ", element("span", "badge", "from this page"));
}

function element(name, classes, text) {
  const e = document.createElement(name);
  if (classes) e.className = classes;
  if (text !== undefined) e.textContent = text;
  return e;
}

function shorten(text, most = maxShown) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").textContent = paused ? "Resume" : "Pause";
  if (!paused && waiting.length > 0) flush();
});

// --- Connection --------------------------------------------------------------------------------------------------

let stream = null;
let streamState = "idle";

function showState(name = streamState) {
  streamState = name;
  const words = {
    connecting: "Connecting…",
    open: session.state.active ? "Live: public updates, and private ones you may read." : "Live: public updates.",
    reconnecting: "Reconnecting…",
    waiting: "The hub does not answer, or has no room. Trying again shortly…",
    "signed-out": `${session.state.ended === "signed-out" ? "Signed out" : "Your sign-in has ended"}: nothing arrives any more.`,
    refused: "The hub refused the stream. Sign in, then it opens.",
  };
  document.querySelector(".state").dataset.state = name;
  if (words[name]) say($("state"), words[name]);
  $("anew").hidden = name !== "signed-out";
}

async function connect() {
  try {
    const { hub, cursor } = await discover(resource);
    stream = new Stream({ hub, cursor, pattern, session, event: receive, state: showState });
    stream.open();
    $("pause").hidden = false;
  } catch (error) {
    showState("refused");
    say($("state"), `Not connected: ${error.message}. Reload the page to try again.`);
  }
}

session.addEventListener("change", () => showState());
$("anew").addEventListener("click", async () => {
  await session.check().catch(() => {}); // takes away what is left of the session, which the hub would refuse
  stream.open();
});

// --- Publish -----------------------------------------------------------------------------------------------------

const form = $("publish");

async function publish(event) {
  event.preventDefault();
  const button = form.querySelector("button[type=submit]");
  if (button.disabled) return;
  button.disabled = true;
  result("", "Publishing…");
  const fields = new FormData(form);
  try {
    const response = await fetch(form.action, {
      method: "POST", credentials: "include", body: new URLSearchParams(fields),
    });
    if (response.ok) {
      const id = (await response.text()).trim();
      remember(id, { topic: String(fields.get("topic")), private: fields.has("private") });
      result("good", "Published as ", element("code", "wrap", id));
    } else {
      result("bad", await explain(response));
      if (response.status === 401) offerLogin();
    }
  } catch {
    result("bad", "Not published: the hub cannot be reached.");
  } finally {
    button.disabled = false;
  }
}

function remember(id, what) {
  published.set(id, what);
  if (published.size > maxEntries) published.delete(published.keys().next().value);
  mark(id);
}

// explain reads a problem document (RFC 9457). Its title is a summary of the status, and is said only when nothing else
// is.
async function explain(response) {
  const known = { 401: "Sign in first.", 403: "You may not publish to this topic." }[response.status];
  let problem = {};
  try {
    problem = (await response.json()) ?? {};
  } catch {
    // Something in between answered.
  }
  const parts = [known, problem.detail, problem.hint].filter((p) => typeof p === "string" && p !== "");
  if (parts.length === 0) parts.push(String(problem.title ?? `The answer was ${response.status}`));
  return ["Not published.", ...parts.map((p) => (/[.!?]$/.test(p) ? p : `${p}.`))].join(" ");
}

function result(kind, ...content) {
  $("result").dataset.kind = kind;
  $("result").replaceChildren(...content);
}

function offerLogin() {
  const link = element("a", "", "Sign in");
  link.href = login;
  $("result").append(" ", link);
  session.check().catch(() => {});
}

form.addEventListener("submit", publish);

// --- Copy buttons ------------------------------------------------------------------------------------------------

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      $("copied").textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(code);
      $("copied").textContent = "Selected. Press Ctrl+C or ⌘C to copy.";
    }
    setTimeout(() => ($("copied").textContent = ""), 4_000);
  });
}

// --- Start -------------------------------------------------------------------------------------------------------

if (new URLSearchParams(location.search).has("session_error")) {
  history.replaceState(null, "", location.pathname);
  $("problem")?.focus();
}

try {
  await session.check();
} catch (error) {
  say($("who"), `${error.message}. Reload the page to try again.`);
}
await connect();
