// The sign-in of this browser at a hub: who it is, that it stays alive, and how it ends. All tabs of an origin act as one:
// one of them renews, the others follow, and a sign-out in one ends it in all. No token is ever seen here.
// Nothing here touches the document.

const slice = 20_000; // the longest wait between two looks at the clock: timers stand still while a machine sleeps
const soonest = 1_000; // between two renewals
const retryFirst = 2_000;
const retryMost = 30_000;
const patience = 15_000; // for one answer
const signOutWaits = 2_000; // for a renewal of another tab

const nobody = Object.freeze({ active: false, renewable: false, ended: "", trouble: false });

// Session knows the state of one hub's session. It fires "change" when the state has changed:
//   active     the hub accepts this browser's cookie
//   renewable  the session goes on by itself; with active false it is about to come back
//   sub, username  who it is
//   ended      why nobody is signed in any more: "signed-out", "expired", or "" when nobody was
//   trouble    renewing does not work at the moment; it is tried again
// It fires "renewed" when the hub has a newer cookie from now on.
export class Session extends EventTarget {
  #url;
  #channel;
  #state = nobody;
  #life = null; // of an active session: {expires, due} in milliseconds from {wall, steady}, when that was learned
  #until = ""; // expires_at of the same
  #ends = 0; // how many times a session has ended: an answer that was asked for before an end says nothing after it
  #checking = null;
  #renewing = null;
  #timer = 0;
  #failures = 0;
  #listening = new AbortController();

  // url is that of the session document, {hub}/session.
  constructor({ url }) {
    super();
    this.#url = new URL(url, globalThis.location?.href).href;
    this.#channel = openChannel(`cinnabar-session ${this.#url}`, (message) => this.#hear(message));
    const { signal } = this.#listening;
    const look = () => this.#look();
    globalThis.document?.addEventListener("visibilitychange", () => globalThis.document.hidden || look(), { signal });
    globalThis.addEventListener?.("online", look, { signal });
    globalThis.addEventListener?.("pageshow", (event) => event.persisted && look(), { signal });
  }

  get state() {
    return this.#state;
  }

  // left is how many milliseconds the hub still accepts the cookie. Only differences of the server's times count, so it does not
  // matter what time this machine believes it is.
  get left() {
    return this.#life ? Math.max(0, this.#life.expires - elapsed(this.#life)) : 0;
  }

  // due is how many milliseconds it takes until the session is renewed.
  get due() {
    return this.#life ? Math.max(0, this.#life.due - elapsed(this.#life)) : 0;
  }

  // check asks the hub, renews the session if it is time, and returns the state. It throws when the hub cannot be asked; a renewal
  // that fails is tried again later.
  check() {
    this.#checking ??= this.#check().finally(() => (this.#checking = null));
    return this.#checking;
  }

  async #check() {
    const first = !this.#until && !this.#state.ended;
    const status = await this.#read();
    if (first && status?.active) this.#channel.post({ status }); // tabs that were here before learn of a sign-in
    if (this.#shouldRenew()) await this.#renew();
    return this.#state;
  }

  // signOut ends the session in all tabs, and its streams. It resolves to whether the authorization server was told, and
  // throws when the hub could not be.
  async signOut() {
    const post = () => this.#ask("POST", "/logout");
    const response = await exclusively(this.#url, post, signOutWaits);
    if (!response.ok) throw new Error(`signing out was answered ${response.status}`);
    const { revoked } = await response.json();
    this.#end("signed-out");
    this.#channel.post({ ended: "signed-out" });
    return revoked === true;
  }

  // close lets go of everything. The session itself stays as it is.
  close() {
    clearTimeout(this.#timer);
    this.#listening.abort();
    this.#channel.close();
  }

  #ask(method, path = "") {
    return fetch(this.#url + path, {
      method,
      credentials: "include",
      cache: "no-store",
      headers: method === "POST" ? { "X-Mercure-Session": "1" } : {},
      keepalive: path === "/logout",
      signal: AbortSignal.timeout(patience),
    });
  }

  // #read asks for the state and takes it over.
  async #read() {
    const ends = this.#ends;
    const response = await this.#ask("GET");
    if (!response.ok) throw new Error(`the session cannot be read (${response.status})`);
    const status = await response.json();
    if (ends !== this.#ends) return null;
    this.#learn(status);
    return status;
  }

  #shouldRenew() {
    return this.#state.renewable && this.due === 0;
  }

  // #renew renews the session unless another tab has done so meanwhile. It does not throw.
  #renew() {
    this.#renewing ??= this.#tryToRenew().finally(() => (this.#renewing = null));
    return this.#renewing;
  }

  async #tryToRenew() {
    try {
      await exclusively(this.#url, async () => {
        await this.#read();
        if (this.#shouldRenew()) await this.#post();
      });
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      const growing = Math.min(retryFirst * 2 ** (this.#failures - 1), retryMost);
      this.#arm(Math.max(growing, (error.retryAfter ?? 0) * 1_000) * (1 + Math.random() / 4));
      this.#set({ ...this.#state, trouble: true });
    }
  }

  async #post() {
    const ends = this.#ends;
    const response = await this.#ask("POST", "/refresh");
    if (response.status === 401) {
      this.#end("expired");
      this.#channel.post({ ended: "expired" });
      return;
    }
    if (response.status === 409) {
      this.#set({ ...this.#state, renewable: false });
      this.#arm();
      return;
    }
    if (!response.ok) {
      const retryAfter = Number(response.headers.get("Retry-After"));
      throw Object.assign(new Error(`renewing was answered ${response.status}`), { retryAfter });
    }
    const status = await response.json();
    if (ends !== this.#ends) return;
    this.#learn(status);
    this.#channel.post({ status });
    this.#arm(Math.max(this.due, soonest));
  }

  // #hear takes over what another tab has learned.
  #hear({ status, ended }) {
    if (ended) this.#end(ended);
    else if (status?.active && !(this.#state.active && status.sub === this.#state.sub && status.expires_at < this.#until)) this.#learn(status);
  }

  // #learn takes over a session document.
  #learn(status) {
    if (!status.active && !status.renewable) {
      const had = this.#state.active || this.#state.renewable;
      if (had) this.#end("expired");
      return;
    }
    const renewed = this.#until && status.active && status.expires_at > this.#until;
    this.#life = null;
    this.#until = "";
    if (status.active) {
      const now = Date.parse(status.now);
      const expires = Date.parse(status.expires_at) - now;
      const due = Date.parse(status.refresh_after) - now;
      this.#life = { expires, due, wall: Date.now(), steady: performance.now() };
      this.#until = status.expires_at;
    }
    const { active, renewable } = status;
    const { sub, username } = active ? status : this.#state; // one that is about to come back is of the same person
    const trouble = this.#state.trouble && renewable && this.due === 0;
    this.#set({ active, renewable, sub, username, ended: "", trouble });
    if (renewed) this.dispatchEvent(new Event("renewed"));
    this.#arm();
  }

  #end(ended) {
    clearTimeout(this.#timer);
    this.#ends += 1;
    this.#life = null;
    this.#until = "";
    this.#set({ ...nobody, ended });
  }

  #set(state) {
    const same = Object.keys({ ...state, ...this.#state }).every((name) => state[name] === this.#state[name]);
    this.#state = Object.freeze(state);
    if (!same) this.dispatchEvent(new Event("change"));
  }

  // #next is how long to wait for the renewal, a little spread so that not all tabs ask at once, or for the end of a session that
  // cannot be renewed.
  #next() {
    if (!this.#state.renewable) return this.left;
    return this.due + Math.random() * Math.min(2_000, (this.left - this.due) / 10);
  }

  #arm(wait = this.#next()) {
    clearTimeout(this.#timer);
    if (!this.#state.active && !this.#state.renewable) return;
    const until = { wall: Date.now(), steady: performance.now() };
    const look = () => {
      const rest = wait - elapsed(until);
      if (rest > 0) this.#timer = setTimeout(look, Math.min(rest, slice));
      else if (this.#state.renewable) this.#renew();
      else this.#look();
    };
    this.#timer = setTimeout(look, Math.min(Math.max(wait, 0), slice));
  }

  // #look checks when something may have happened that no timer saw: the page is looked at again, the network is back.
  #look() {
    this.check().catch(() => this.#arm(retryFirst));
  }
}

// elapsed is how long ago a moment was: the clock may have been set meanwhile, and the steady one stands still while a machine
// sleeps, so the larger counts. Too much of it costs a question.
function elapsed({ wall, steady }) {
  return Math.max(Date.now() - wall, performance.now() - steady);
}

// exclusively runs a function while no other tab of this origin does. It waits at most so many milliseconds, if that is given, and
// does not wait where browsers cannot: the hub then sorts out what comes twice.
async function exclusively(name, run, most) {
  const locks = globalThis.navigator?.locks;
  if (!locks) return run();
  const started = {};
  try {
    const options = most ? { signal: AbortSignal.timeout(most) } : {};
    return await locks.request(`cinnabar-session ${name}`, options, () => {
      started.yes = true;
      return run();
    });
  } catch (error) {
    if (started.yes) throw error;
    return run();
  }
}

// openChannel connects the tabs of an origin. What goes through it is what the session document says anyway.
function openChannel(name, receive) {
  if (globalThis.BroadcastChannel) {
    const channel = new BroadcastChannel(name);
    channel.onmessage = (event) => receive(event.data ?? {});
    return { post: (message) => channel.postMessage(message), close: () => channel.close() };
  }
  const hear = ({ key, newValue }) => {
    if (key === name && newValue) receive(JSON.parse(newValue));
  };
  globalThis.addEventListener?.("storage", hear);
  return {
    post(message) {
      try {
        localStorage.setItem(name, JSON.stringify(message)); // the others get an event
        localStorage.removeItem(name);
      } catch {
        // Storage is full or forbidden: the others learn it from the hub.
      }
    },
    close: () => globalThis.removeEventListener?.("storage", hear),
  };
}
