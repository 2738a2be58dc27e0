// The live connection of a page: discovery, the native EventSource, and what to do when it ends.
// Nothing here touches the document.

const retryFirst = 2_000;
const retryMost = 30_000;

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

// Stream keeps one EventSource open. EventSource comes back by itself after a network error or a clean end; it gives
// up for good when the hub answers anything but 200, without saying why. Then refused() is asked: "again" opens the
// stream at once (with other credentials than before), "later" after a growing pause, "stop" leaves it closed.
export class Stream {
  #options;
  #source = null;
  #timer = 0;
  #pause = retryFirst;

  // options: hub, pattern, cursor, event(MessageEvent), state(name), refused() -> Promise<"again"|"later"|"stop">
  constructor(options) {
    this.#options = { ...options };
  }

  open() {
    this.close();
    const { hub, pattern, cursor, event, state } = this.#options;
    const address = new URL(hub);
    address.searchParams.append("match_urlpattern", pattern);
    if (cursor) address.searchParams.append("last_event_id", cursor);
    state("connecting");
    const source = new EventSource(address, { withCredentials: true });
    this.#source = source;
    source.onopen = () => {
      this.#pause = retryFirst;
      state("open");
    };
    source.onmessage = (message) => {
      if (message.lastEventId) this.#options.cursor = message.lastEventId;
      event(message);
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) state("reconnecting");
      else if (source === this.#source) this.#refused(source);
    };
  }

  async #refused(source) {
    const answer = await this.#options.refused();
    if (source !== this.#source) return; // closed or opened again meanwhile
    if (answer === "again") this.open();
    if (answer !== "later") return;
    this.#timer = setTimeout(() => this.open(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, retryMost);
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}
