// Run by TestScripts_Modules with Node. MODULE names a copy of web/static/session.js.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const { Session } = await import(process.env.MODULE);

// The server: its clock is years away from the browser's.
const ahead = 5 * 365 * 86_400_000;
const life = 600_000;
let server;

function newServer() {
  return {
    asked: [], answers: [], alive: true, renewable: true, exp: 0, sub: "u_ada",
    signIn() {
      this.exp = Date.now() + life;
    },
    status() {
      if (!this.alive) return { active: false, renewable: false };
      if (Date.now() >= this.exp) return { active: false, renewable: this.renewable };
      const at = (t) => new Date(t + ahead).toISOString();
      return {
        active: true, renewable: this.renewable, sub: this.sub, username: "ada",
        now: at(Date.now()), expires_at: at(this.exp), refresh_after: at(this.exp - life / 5),
      };
    },
    async fetch(url, { method, headers, credentials }) {
      const path = new URL(url).pathname.replace("/hub/session", "");
      this.asked.push(`${method} ${path}`.trim());
      assert.equal(credentials, "include");
      if (method === "POST") assert.equal(headers["X-Mercure-Session"], "1");
      const answer = this.answers.shift();
      if (answer instanceof Error) throw answer;
      if (answer) return typeof answer === "function" ? answer() : answer;
      if (path === "/logout") {
        this.alive = false;
        return Response.json({ active: false, renewable: false, revoked: true });
      }
      if (path === "/refresh") {
        if (!this.alive) return new Response(null, { status: 401 });
        this.signIn();
      }
      return Response.json(this.status());
    },
  };
}

// The tabs of one origin: channels, and locks.
class Channel {
  static all = new Set();
  constructor(name) {
    this.name = name;
    Channel.all.add(this);
  }
  postMessage(data) {
    for (const other of Channel.all) if (other !== this && other.name === this.name) queueMicrotask(() => other.onmessage({ data: structuredClone(data) }));
  }
  close() {
    Channel.all.delete(this);
  }
}

class Locks {
  held = new Map();
  async request(name, options, run) {
    const before = this.held.get(name) ?? Promise.resolve();
    const granted = options.signal
      ? Promise.race([before, new Promise((_, no) => options.signal.addEventListener("abort", () => no(options.signal.reason)))])
      : before;
    let release;
    this.held.set(name, before.then(() => new Promise((done) => (release = done))));
    await granted;
    await Promise.resolve();
    try {
      return await run();
    } finally {
      release?.();
    }
  }
}

let listeners;

// chance gives Math.random's values, over and over: tests leave nothing to it.
function chance(...values) {
  let next = 0;
  Math.random = () => values[next++ % values.length];
}

const eighths = [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8];

beforeEach(() => {
  chance(0);
  listeners = {};
  server = newServer();
  Channel.all.clear();
  globalThis.fetch = (...args) => server.fetch(...args);
  globalThis.BroadcastChannel = Channel;
  Object.defineProperty(globalThis, "navigator", { value: { locks: new Locks() }, configurable: true });
  const listen = (name, listener) => (listeners[name] ??= []).push(listener);
  globalThis.addEventListener = listen;
  globalThis.removeEventListener = () => {};
  globalThis.document = { hidden: false, addEventListener: listen };
});

const settle = async () => {
  for (let i = 0; i < 10; i++) await new Promise((done) => setImmediate(done));
};

async function pass(t, milliseconds, step = 1_000) {
  for (let rest = milliseconds; rest > 0; rest -= step) {
    t.mock.timers.tick(Math.min(step, rest));
    await settle();
  }
}

function tab(t) {
  const session = new Session({ url: "https://h.example/hub/session" });
  const seen = [];
  session.addEventListener("change", () => seen.push({ ...session.state }));
  t.after(() => session.close());
  return { session, seen };
}

const clock = (t) => t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
const count = (what) => server.asked.filter((asked) => asked === what).length;

test("nobody is signed in", async (t) => {
  clock(t);
  server.alive = false;
  const { session, seen } = tab(t);
  assert.deepEqual(await session.check(), { active: false, renewable: false, ended: "", trouble: false });
  await pass(t, 3_600_000, 60_000);
  assert.deepEqual(server.asked, ["GET"]);
  assert.deepEqual(seen, []);
});

test("a session is renewed when it is due, whatever the browser's clock says, and says nothing about it", async (t) => {
  clock(t);
  server.signIn();
  const { session, seen } = tab(t);
  let renewed = 0;
  session.addEventListener("renewed", () => renewed++);
  await session.check();
  assert.ok(session.left > 599_000 && session.left <= 600_000, `${session.left}`);
  assert.ok(session.due > 479_000 && session.due <= 480_000, `${session.due}`);
  await pass(t, 479_000, 10_000);
  assert.equal(count("POST /refresh"), 0);
  await pass(t, 2_000);
  assert.equal(count("POST /refresh"), 1);
  await pass(t, 3 * 481_000, 1_000);
  assert.equal(count("POST /refresh"), 4);
  assert.equal(renewed, 4);
  assert.equal(seen.length, 1);
  assert.deepEqual(seen[0], { active: true, renewable: true, sub: "u_ada", username: "ada", ended: "", trouble: false });
});

// Without locks two tabs may ask in the same moment; the hub then gives both the same answer.
for (const [name, most, arrange] of [["", 1, () => {}], [" or twice without locks", 2, () => delete globalThis.navigator.locks]]) {
  test(`many tabs renew once${name}`, async (t) => {
    clock(t);
    arrange();
    chance(...eighths);
    server.signIn();
    const tabs = Array.from({ length: 8 }, () => tab(t));
    for (const { session } of tabs) await session.check();
    await pass(t, 490_000, 100);
    assert.ok(count("POST /refresh") >= 1 && count("POST /refresh") <= most, `${count("POST /refresh")}`);
    for (const { session } of tabs) assert.ok(session.left > life - 15_000, `${session.left}`);
  });
}

test("tabs that cannot hear each other renew once, too", async (t) => {
  clock(t);
  Channel.prototype.postMessage = () => {};
  t.after(() => (Channel.prototype.postMessage = original));
  chance(...eighths);
  server.signIn();
  const tabs = Array.from({ length: 8 }, () => tab(t));
  for (const { session } of tabs) await session.check();
  await pass(t, 490_000, 100);
  assert.equal(count("POST /refresh"), 1);
});
const original = Channel.prototype.postMessage;

test("messages pass through the storage where there are no channels", async (t) => {
  clock(t);
  delete globalThis.BroadcastChannel;
  const stored = [];
  globalThis.localStorage = {
    setItem(key, newValue) {
      stored.push("set");
      for (const listener of listeners.storage) listener({ key, newValue });
    },
    removeItem: () => stored.push("removed"),
  };
  server.signIn();
  const [one, other] = [tab(t), tab(t)];
  await one.session.check();
  await other.session.check();
  await one.session.signOut();
  assert.equal(other.session.state.ended, "signed-out");
  assert.deepEqual(stored.slice(-2), ["set", "removed"]);
  globalThis.localStorage.setItem = () => {
    throw new Error("forbidden");
  };
  await one.session.signOut();
});

test("signing out ends all tabs", async (t) => {
  clock(t);
  server.signIn();
  const tabs = Array.from({ length: 3 }, () => tab(t));
  for (const { session } of tabs) await session.check();
  assert.equal(await tabs[0].session.signOut(), true);
  await settle();
  for (const { session, seen } of tabs) {
    assert.deepEqual(session.state, { active: false, renewable: false, ended: "signed-out", trouble: false });
    assert.equal(session.left, 0);
    assert.equal(seen.length, 2);
  }
  await pass(t, 3_600_000, 60_000);
  assert.deepEqual(server.asked.filter((asked) => asked !== "GET"), ["POST /logout"]);
});

test("a sign-out that fails says so and ends nothing", async (t) => {
  clock(t);
  server.signIn();
  const { session } = tab(t);
  await session.check();
  for (const answer of [new Response(null, { status: 403 }), new TypeError("unreachable")]) {
    server.answers = [answer];
    await assert.rejects(session.signOut());
    assert.equal(session.state.active, true);
  }
});

test("a sign-out does not wait long for a renewal that hangs", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  server.signIn();
  const [one, other] = [tab(t), tab(t)];
  await one.session.check();
  await other.session.check();
  server.exp = Date.now();
  server.answers = [null, null, () => new Promise(() => {})];
  one.session.check();
  await settle();
  const timeout = AbortSignal.timeout;
  AbortSignal.timeout = (most) => (most === 2_000 ? AbortSignal.abort() : timeout.call(AbortSignal, most));
  t.after(() => (AbortSignal.timeout = timeout));
  globalThis.navigator.locks.request = async (name, options, run) => {
    options.signal?.throwIfAborted();
    return run();
  };
  await other.session.signOut();
  assert.equal(other.session.state.ended, "signed-out");
});

test("an answer from before a sign-out does not bring the session back", async (t) => {
  clock(t);
  server.signIn();
  const [one, other] = [tab(t), tab(t)];
  await one.session.check();
  await other.session.check();
  let answer;
  const before = Response.json(server.status());
  server.answers = [() => new Promise((done) => (answer = () => done(before)))];
  const checked = other.session.check();
  await settle();
  await one.session.signOut();
  await settle();
  answer();
  await checked;
  assert.equal(other.session.state.active, false);
  assert.equal(other.session.state.ended, "signed-out");
});

test("a grant that is dead ends the session in all tabs", async (t) => {
  clock(t);
  server.signIn();
  const [one, other] = [tab(t), tab(t)];
  await one.session.check();
  await other.session.check();
  server.answers = [null, () => ((server.alive = false), new Response(null, { status: 401 }))];
  await pass(t, 484_000);
  assert.equal(one.session.state.ended, "expired");
  assert.equal(other.session.state.ended, "expired");
  assert.equal(count("POST /refresh"), 1);
});

test("a renewal that fails is tried again, as late as the hub asks", async (t) => {
  clock(t);
  server.signIn();
  const { session, seen } = tab(t);
  await session.check();
  server.answers = [null, new Response(null, { status: 503, headers: { "Retry-After": "20" } }), new TypeError("unreachable")];
  await pass(t, 481_000);
  assert.equal(count("POST /refresh"), 1);
  assert.equal(session.state.trouble, true);
  assert.equal(session.state.active, true);
  await pass(t, 18_000);
  assert.equal(server.asked.length, 3);
  await pass(t, 3_000); // the second one reaches nobody
  assert.equal(server.asked.length, 4);
  await pass(t, 5_000);
  assert.equal(count("POST /refresh"), 2);
  assert.deepEqual(seen.map(({ trouble }) => trouble), [false, true, false]);
});

test("an outage that outlasts the token ends nothing", async (t) => {
  clock(t);
  server.signIn();
  const { session, seen } = tab(t);
  await session.check();
  const { fetch } = server;
  server.fetch = async (...args) => (args[1].method === "POST" ? new Response(null, { status: 503 }) : fetch.apply(server, args));
  await pass(t, 900_000);
  assert.deepEqual(session.state, { active: false, renewable: true, sub: "u_ada", username: "ada", ended: "", trouble: true });
  server.fetch = fetch;
  await pass(t, 40_000);
  assert.equal(session.state.active, true);
  assert.deepEqual(seen.map(({ active, trouble }) => [active, trouble]), [[true, false], [true, true], [false, true], [true, false]]);
});

test("a session that cannot be renewed ends by itself", async (t) => {
  clock(t);
  server.renewable = false;
  server.signIn();
  const { session } = tab(t);
  await session.check();
  await pass(t, 599_000, 10_000);
  assert.equal(session.state.active, true);
  server.alive = false;
  await pass(t, 3_000);
  assert.equal(session.state.ended, "expired");
  assert.equal(count("POST /refresh"), 0);
});

test("a session that the hub will not renew after all", async (t) => {
  clock(t);
  server.signIn();
  const { session } = tab(t);
  await session.check();
  server.answers = [null, new Response(null, { status: 409 })];
  await pass(t, 500_000);
  assert.equal(count("POST /refresh"), 1);
  assert.equal(session.state.renewable, false);
  assert.equal(session.state.active, true);
});

test("after sleep, and when the page is looked at again, the session is asked for at once", async (t) => {
  clock(t);
  server.signIn();
  const { session } = tab(t);
  await session.check();
  t.mock.timers.setTime(Date.now() + 8 * 3_600_000); // the lid was closed; no timer has run
  for (const name of ["visibilitychange", "online"]) assert.equal(listeners[name].length, 1);
  listeners.visibilitychange[0]();
  await settle();
  assert.equal(session.state.active, true);
  assert.equal(count("POST /refresh"), 1);
  globalThis.document.hidden = true;
  const asked = server.asked.length;
  listeners.visibilitychange[0]();
  listeners.pageshow[0]({ persisted: false });
  await settle();
  assert.equal(server.asked.length, asked);
  listeners.pageshow[0]({ persisted: true });
  listeners.online[0]();
  await settle();
  assert.equal(server.asked.length, asked + 1); // asked once for both
});

test("a clock that is set back delays nothing", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const steady = t.mock.method(performance, "now", () => 0);
  server.signIn();
  const { session } = tab(t);
  await session.check();
  const now = Date.now();
  t.mock.method(Date, "now", () => now - 86_400_000);
  steady.mock.mockImplementation(() => 300_000);
  assert.ok(session.left <= 300_000 && session.left > 299_000, `${session.left}`);
});

test("a sign-in of another tab is learned of, and one of another person", async (t) => {
  clock(t);
  server.alive = false;
  const { session, seen } = tab(t);
  await session.check();
  server.alive = true;
  server.signIn();
  const other = tab(t);
  await other.session.check();
  await settle();
  assert.equal(session.state.sub, "u_ada");
  server.sub = "u_grace";
  await tab(t).session.check();
  await settle();
  assert.deepEqual(seen.map(({ sub }) => sub), ["u_ada", "u_grace"]);
});

test("the hub cannot be asked", async (t) => {
  clock(t);
  const { session } = tab(t);
  server.answers = [new Response(null, { status: 503 }), new TypeError("unreachable")];
  await assert.rejects(session.check(), /503/);
  await assert.rejects(session.check(), /unreachable/);
});

test("a closed session asks nothing any more", async (t) => {
  clock(t);
  server.signIn();
  const { session } = tab(t);
  await session.check();
  session.close();
  await pass(t, 1_000_000, 10_000);
  assert.deepEqual(server.asked, ["GET"]);
});
