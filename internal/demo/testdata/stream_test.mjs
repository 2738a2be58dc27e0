// Run by TestScripts_Modules with Node. MODULE names a copy of web/static/stream.js.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

const { Stream, parseLinks, discover } = await import(process.env.MODULE);

test("Link fields", () => {
  const hub = "https://h.example/hub";
  for (const [header, want] of [
    [null, []],
    ["", []],
    [`<${hub}>; rel="mercure"`, [{ target: hub, params: { rel: "mercure" } }]],
    [`<${hub}>;rel=mercure;Last-Event-ID="a, b; c \\" d"`, [{ target: hub, params: { rel: "mercure", "last-event-id": 'a, b; c " d' } }]],
    [`</a>; rel="self", <${hub}>; rel="mercure"`, [{ target: "/a", params: { rel: "self" } }, { target: hub, params: { rel: "mercure" } }]],
    [`<a>; rel="x"; rel="y"`, [{ target: "a", params: { rel: "x" } }]],
    ["no link at all; rel=mercure", []],
  ]) {
    assert.deepEqual(parseLinks(header), want);
  }
});

test("discovery", async () => {
  const answer = (link, status = 200) => {
    globalThis.fetch = async (url) => Object.defineProperty(new Response("{}", { status, headers: link ? { Link: link } : {} }), "url", { value: url });
  };
  answer('</hub>; rel="mercure"; last-event-id="urn:x"');
  assert.deepEqual(await discover("https://h.example/book"), { hub: "https://h.example/hub", cursor: "urn:x" });
  answer("");
  await assert.rejects(discover("https://h.example/book"), /names no hub/);
  answer("", 500);
  await assert.rejects(discover("https://h.example/book"), /500/);
});

// A stand-in for EventSource that the test drives.
class Source {
  static OPEN = 1;
  static CLOSED = 2;
  static all = [];
  readyState = 0;
  constructor(url, options) {
    Object.assign(this, { url: new URL(url), options });
    Source.all.push(this);
  }
  close() {
    this.readyState = 2;
  }
  opens() {
    this.readyState = 1;
    this.onopen();
  }
  fails(state) {
    this.readyState = state;
    this.onerror();
  }
  static get last() {
    return Source.all.at(-1);
  }
}

// A stand-in for the Session of session.js.
class FakeSession extends EventTarget {
  state = { active: false, renewable: false, ended: "" };
  checks = [];
  set(state) {
    this.state = { ended: "", ...state };
    this.dispatchEvent(new Event("change"));
  }
  async check() {
    const next = this.checks.shift();
    if (next instanceof Error) throw next;
    if (next) this.set(next);
    return this.state;
  }
}

const ada = { active: true, renewable: true, sub: "u_ada" };
let current = null;
let listeners = {};

function open(t, { heads = [], session } = {}) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  Source.all = [];
  listeners = {};
  globalThis.EventSource = Source;
  globalThis.addEventListener = (name, listener) => (listeners[name] = listener);
  const asked = [];
  globalThis.fetch = async (url, { method }) => {
    asked.push(`${method} ${new URL(url).pathname}`);
    const status = heads.shift();
    if (!status) throw new TypeError("unreachable");
    return new Response(null, { status });
  };
  const seen = { states: [], events: [], asked };
  const stream = new Stream({
    hub: "https://h.example/hub?a=b", pattern: "https://t.example/*", cursor: "urn:1", session,
    event: (e) => seen.events.push(e.data), state: (s) => seen.states.push(s),
  });
  stream.open();
  current = stream;
  return { stream, seen };
}

afterEach(() => current?.close());

const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((done) => setImmediate(done));
};

test("the address", (t) => {
  open(t);
  const [{ url, options }] = Source.all;
  assert.deepEqual([...url.searchParams], [["a", "b"], ["match_urlpattern", "https://t.example/*"], ["last_event_id", "urn:1"]]);
  assert.deepEqual(options, { withCredentials: true });
});

test("an end, and a network error, are left to EventSource", async (t) => {
  const { seen } = open(t);
  Source.last.opens();
  Source.last.fails(0);
  await settle();
  assert.deepEqual(seen.states, ["connecting", "open", "reconnecting"]);
  assert.equal(Source.all.length, 1);
  assert.deepEqual(seen.asked, []);
});

test("a token that has expired: the session comes back, and the stream goes on where it was", async (t) => {
  const session = new FakeSession();
  session.state = { ...ada, ended: "" };
  const { seen } = open(t, { heads: [401], session });
  Source.last.opens();
  Source.last.onmessage({ lastEventId: "urn:2", data: "x" });
  session.checks = [ada];
  Source.last.fails(2);
  await settle();
  assert.equal(Source.all.length, 2);
  assert.equal(Source.last.url.searchParams.get("last_event_id"), "urn:2");
  assert.deepEqual(seen.events, ["x"]);
  assert.deepEqual(seen.asked, ["HEAD /hub"]);
});

test("a session that cannot be renewed now: the stream waits for it", async (t) => {
  const session = new FakeSession();
  session.state = { ...ada, ended: "" };
  const { seen } = open(t, { heads: [401], session });
  session.checks = [{ active: false, renewable: true, sub: "u_ada" }];
  Source.last.fails(2);
  await settle();
  assert.deepEqual(seen.states, ["connecting", "waiting"]);
  session.set(ada);
  assert.equal(Source.all.length, 2);
});

test("a session that has ended ends the stream, and the next one opens it", async (t) => {
  const session = new FakeSession();
  session.state = { ...ada, ended: "" };
  const { seen } = open(t, { heads: [401], session });
  Source.last.opens();
  session.checks = [{ active: false, renewable: false, ended: "expired" }];
  Source.last.fails(2);
  await settle();
  assert.deepEqual(seen.states, ["connecting", "open", "signed-out"]);
  t.mock.timers.tick(100_000);
  assert.equal(Source.all.length, 1);
  session.set({ ...ada, sub: "u_grace" });
  assert.equal(Source.all.length, 2);
});

test("a sign-out ends the stream at once", (t) => {
  const session = new FakeSession();
  session.state = { ...ada, ended: "" };
  const { seen } = open(t, { session });
  Source.last.opens();
  session.set({ active: false, renewable: false, ended: "signed-out" });
  assert.deepEqual(seen.states, ["connecting", "open", "signed-out"]);
  assert.equal(Source.last.readyState, 2);
});

test("an anonymous stream is not touched by a session that ends", (t) => {
  const session = new FakeSession();
  session.state = { active: false, renewable: false, ended: "signed-out" };
  const { seen } = open(t, { session });
  Source.last.opens();
  session.set({ active: false, renewable: false, ended: "expired" });
  assert.deepEqual(seen.states, ["connecting", "open"]);
});

test("a renewed session leaves the stream alone, another person's opens it anew", (t) => {
  const session = new FakeSession();
  session.state = { ...ada, ended: "" };
  open(t, { session });
  Source.last.opens();
  session.set({ ...ada });
  assert.equal(Source.all.length, 1);
  session.set({ ...ada, sub: "u_grace" });
  assert.equal(Source.all.length, 2);
});

test("a newer cookie is used at once, and nobody notices", (t) => {
  const session = new FakeSession();
  session.state = { ...ada, ended: "" };
  const { seen } = open(t, { session });
  session.dispatchEvent(new Event("renewed"));
  assert.equal(Source.all.length, 1); // not open yet: it comes with that cookie anyway
  Source.last.opens();
  Source.last.onmessage({ lastEventId: "urn:7", data: "x" });
  session.dispatchEvent(new Event("renewed"));
  assert.equal(Source.all.length, 2);
  assert.equal(Source.all[0].readyState, 2);
  assert.equal(Source.last.url.searchParams.get("last_event_id"), "urn:7");
  Source.last.opens();
  assert.deepEqual(seen.states, ["connecting", "open", "open"]);
});

test("a dead cookie is taken away, and the stream is an anonymous one", async (t) => {
  const session = new FakeSession();
  const { seen } = open(t, { heads: [401, 401], session });
  Source.last.fails(2);
  await settle();
  assert.equal(Source.all.length, 2);
  Source.last.fails(2);
  await settle();
  assert.equal(seen.states.at(-1), "refused");
});

for (const [name, head] of [["does not answer", 0], ["is busy", 503], ["limits", 429]]) {
  test(`a hub that ${name} is tried again after a growing pause`, async (t) => {
    const { seen } = open(t, { heads: [head, head, head] });
    for (const [index, pause] of [[0, 2_000], [1, 4_000]]) {
      Source.all[index].fails(2);
      await settle();
      assert.equal(seen.states.at(-1), "waiting");
      t.mock.timers.tick(pause - 1);
      assert.equal(Source.all.length, index + 1);
      t.mock.timers.tick(1);
      assert.equal(Source.all.length, index + 2);
    }
  });
}

test("a hub that cannot use the request is left alone", async (t) => {
  const { seen } = open(t, { heads: [400] });
  Source.last.fails(2);
  await settle();
  t.mock.timers.tick(100_000);
  assert.equal(Source.all.length, 1);
  assert.equal(seen.states.at(-1), "refused");
});

test("a hub that is back already is used once at once, then with pauses", async (t) => {
  open(t, { heads: [200, 200] });
  Source.last.fails(2);
  await settle();
  assert.equal(Source.all.length, 2);
  Source.last.fails(2);
  await settle();
  assert.equal(Source.all.length, 2);
});

test("a closed stream stays closed", async (t) => {
  const session = new FakeSession();
  const { stream } = open(t, { heads: [200], session });
  Source.last.fails(2);
  stream.close();
  await settle();
  session.set(ada);
  listeners.online();
  t.mock.timers.tick(1_000_000);
  assert.equal(Source.all.length, 1);
});

test("sleep, the network and the page's own comings and goings", (t) => {
  const { seen } = open(t);
  Source.last.opens();
  Source.last.onmessage({ lastEventId: "urn:3", data: "x" });
  for (let i = 0; i < 60; i++) t.mock.timers.tick(10_000); // awake all the time
  assert.equal(Source.all.length, 1);
  t.mock.timers.setTime(Date.now() + 3_600_000); // asleep
  t.mock.timers.tick(20_000);
  assert.equal(Source.all.length, 2);
  listeners.online();
  assert.equal(Source.all.length, 3);
  listeners.pagehide();
  assert.equal(Source.last.readyState, 2);
  listeners.pageshow({ persisted: false });
  assert.equal(Source.all.length, 3);
  listeners.pageshow({ persisted: true });
  assert.equal(Source.all.length, 4);
  assert.equal(Source.last.url.searchParams.get("last_event_id"), "urn:3");
  assert.deepEqual(seen.events, ["x"]);
});
