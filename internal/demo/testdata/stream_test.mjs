// Run by TestScripts_Stream with Node. STREAM names a copy of web/static/stream.js.
import assert from "node:assert/strict";
import { test } from "node:test";

const { Stream, parseLinks, discover } = await import(process.env.STREAM);

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
  fail(state) {
    this.readyState = state;
    this.onerror();
  }
}

function open(t, answers = []) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  Source.all = [];
  globalThis.EventSource = Source;
  const seen = { states: [], events: [] };
  const stream = new Stream({
    hub: "https://h.example/hub?a=b", pattern: "https://t.example/*", cursor: "urn:1",
    event: (e) => seen.events.push(e.data), state: (s) => seen.states.push(s), refused: async () => answers.shift(),
  });
  stream.open();
  return { stream, seen };
}

const settle = () => new Promise((done) => setImmediate(done));

test("the address", (t) => {
  open(t);
  const [{ url, options }] = Source.all;
  assert.deepEqual([...url.searchParams], [["a", "b"], ["match_urlpattern", "https://t.example/*"], ["last_event_id", "urn:1"]]);
  assert.deepEqual(options, { withCredentials: true });
});

test("a network error is left to EventSource", async (t) => {
  const { seen } = open(t, ["again"]);
  Source.all[0].onopen();
  Source.all[0].fail(0);
  await settle();
  assert.deepEqual(seen.states, ["connecting", "open", "reconnecting"]);
  assert.equal(Source.all.length, 1);
});

test("a refused stream opens again where it was", async (t) => {
  const { seen } = open(t, ["again"]);
  Source.all[0].onmessage({ lastEventId: "urn:2", data: "x" });
  Source.all[0].fail(2);
  await settle();
  assert.equal(Source.all.length, 2);
  assert.equal(Source.all[1].url.searchParams.get("last_event_id"), "urn:2");
  assert.deepEqual(seen.events, ["x"]);
});

test("later means a growing pause", async (t) => {
  open(t, ["later", "later", "stop"]);
  for (const [index, pause] of [[0, 2_000], [1, 4_000]]) {
    Source.all[index].fail(2);
    await settle();
    t.mock.timers.tick(pause - 1);
    assert.equal(Source.all.length, index + 1);
    t.mock.timers.tick(1);
    assert.equal(Source.all.length, index + 2);
  }
  Source.all[2].fail(2);
  await settle();
  t.mock.timers.tick(100_000);
  assert.equal(Source.all.length, 3);
});

test("a closed stream stays closed", async (t) => {
  const { stream } = open(t, ["again"]);
  Source.all[0].fail(2);
  stream.close();
  await settle();
  assert.equal(Source.all.length, 1);
});
