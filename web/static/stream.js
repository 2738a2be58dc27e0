// The live connection of a page: discovery, the native EventSource, and what to do when it ends.
// Nothing here touches the document.

const retryFirst = 2_000;
const retryMost = 30_000;
const patience = 15_000; // for one answer
const beat = 20_000; // how often the clock is looked at, to find out that the machine slept
const slept = 90_000; // timers of hidden tabs come once a minute at best; a longer silence is sleep

// parseLinks reads Link header fields (RFC 8288) into {target, params}; names are lower-cased.
export function parseLinks(header) {
  const links = [];
  const link = /<([^>]*)>((?:\s*;\s*[^\s;,="]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))*)/g;
  for (const [, target, rest] of (header ?? "").matchAll(link)) {
    const params = {};
    const param = /;\s*([^\s;,="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))/g;
    for (const [, name, quoted, plain] of rest.matchAll(param)) {
      params[name.toLowerCase()] ??= quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1");
    }
    links.push({ target, params });
  }
  return links;
}

// discover asks a resource for its hub and for the event from which nothing is missed.
export async function discover(resource) {
  const response = await fetch(resource, { cache: "no-store" });
  if (!response.ok) throw new Error(`the resource answered ${response.status}`);
  const link = parseLinks(response.headers.get("Link")).find(({ params }) => params.rel === "mercure");
  if (!link) throw new Error("the resource names no hub");
  return { hub: new URL(link.target, response.url).href, cursor: link.params["last-event-id"] ?? "" };
}

// Stream keeps one EventSource open, from one event to the next without a gap.
//
// EventSource comes back by itself, with the cookie that is there then and the last event it saw, after a network error and after
// the hub has ended the stream, as it does when the token expires. It takes its time for that, so the stream is opened anew as soon as
// the session has a newer cookie. EventSource gives up for good when the hub answers anything but 200, and does not say what. Then the hub
// is asked why, and the stream opens again, later, or not at all:
//   connecting    for the first time, or anew
//   open          live
//   reconnecting  EventSource is at it
//   waiting       the hub cannot take it now; tried again after a growing pause
//   signed-out    the session has ended; it opens again with the next one
//   refused       the hub does not accept the request
export class Stream {
  #options;
  #source = null;
  #wanted = false;
  #sub; // who the stream was opened for
  #timer = 0;
  #beat = 0;
  #pause = retryFirst;
  #refusals = 0; // since the stream was open
  #waiting = false;

  // options: hub, pattern, cursor, event(MessageEvent), state(name), session (a Session; optional)
  constructor(options) {
    this.#options = { state: () => {}, ...options };
    options.session?.addEventListener("change", () => this.#follow());
    options.session?.addEventListener("renewed", () => this.#source?.readyState === EventSource.OPEN && this.#open());
    globalThis.addEventListener?.("online", () => this.#wanted && this.open());
    // A page that is left keeps no connection, so that the browser can keep the page.
    globalThis.addEventListener?.("pagehide", () => this.#drop());
    globalThis.addEventListener?.("pageshow", (event) => event.persisted && this.#wanted && this.open());
  }

  // open opens the stream, from the last event it has seen. It may be open already: nothing is lost or repeated.
  open() {
    this.#options.state("connecting");
    this.#open();
  }

  #open() {
    this.#drop();
    this.#wanted = true;
    this.#watch();
    this.#sub = this.#options.session?.state.sub;
    const source = new EventSource(this.#address(), { withCredentials: true });
    this.#source = source;
    source.onopen = () => {
      this.#pause = retryFirst;
      this.#refusals = 0;
      this.#options.state("open");
    };
    source.onmessage = (message) => {
      if (message.lastEventId) this.#options.cursor = message.lastEventId;
      this.#options.event(message);
    };
    source.onerror = () => {
      if (source !== this.#source) return;
      if (source.readyState !== EventSource.CLOSED) this.#options.state("reconnecting");
      else this.#closed(source);
    };
  }

  // close ends the stream until open is called.
  close() {
    this.#wanted = false;
    this.#drop();
  }

  #address() {
    const { hub, pattern, cursor } = this.#options;
    const address = new URL(hub);
    address.searchParams.append("match_urlpattern", pattern);
    if (cursor) address.searchParams.append("last_event_id", cursor);
    return address;
  }

  #drop() {
    this.#waiting = false;
    clearTimeout(this.#timer);
    clearInterval(this.#beat);
    this.#source?.close();
    this.#source = null;
  }

  // #watch finds out that the machine slept: the connection may be dead then without anybody having noticed.
  #watch() {
    let last = Date.now();
    this.#beat = setInterval(() => {
      const now = Date.now();
      if (now - last > slept) this.open();
      last = now;
    }, beat);
  }

  // #follow does as the session does: it ends with it, and opens for whoever comes next.
  #follow() {
    const { active, ended, sub } = this.#options.session.state;
    if (!this.#wanted) return;
    if (ended && this.#sub) this.#stop("signed-out");
    else if (active && (sub !== this.#sub || this.#waiting)) this.open();
  }

  #stop(state) {
    this.#drop();
    this.#sub = undefined;
    this.#options.state(state);
  }

  async #closed(source) {
    const next = await this.#judge();
    if (source !== this.#source) return; // closed or opened again meanwhile
    if (next === "again") this.open();
    else if (next === "later") this.#later();
    else this.#stop(next);
  }

  #later() {
    this.#waiting = true;
    this.#options.state("waiting");
    this.#timer = setTimeout(() => this.open(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, retryMost);
  }

  // #judge finds out why the hub closed the stream and says what to do: "again", "later", or the state to stop in.
  async #judge() {
    const first = this.#refusals++ === 0;
    let status = 0;
    try {
      const signal = AbortSignal.timeout(patience);
      ({ status } = await fetch(this.#address(), { method: "HEAD", credentials: "include", cache: "no-store", signal }));
    } catch {
      // The hub cannot be reached.
    }
    if (status === 401) return this.#unauthorized(first);
    if (status === 200 && first) return "again";
    return status >= 400 && status < 500 && status !== 408 && status !== 429 ? "refused" : "later";
  }

  // #unauthorized asks the session, which renews itself if it can. When it is over, that takes the dead cookie away.
  async #unauthorized(first) {
    const { session } = this.#options;
    if (!session) return "refused";
    try {
      const { active, renewable, ended } = await session.check();
      if (ended && this.#sub) return "signed-out";
      if (first && !renewable || active && first) return "again";
      return active || renewable ? "later" : "refused";
    } catch {
      return "later";
    }
  }
}
