// A person at a browser without scripts: follows redirects and pages that navigate by themselves, keeps cookies, submits forms.

const entities = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function unescape(text) {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (hex) return String.fromCodePoint(parseInt(hex, 16))
    if (decimal) return String.fromCodePoint(Number(decimal))
    return entities[name] ?? whole
  })
}

function attribute(tag, name) {
  const m = tag.match(new RegExp(`\\s${name}="([^"]*)"`))
  return m ? unescape(m[1]) : ''
}

export class Person {
  // stop is the redirect URI of the client: nobody serves it, and what is sent there is the result.
  constructor(stop, secret) {
    this.stop = stop
    this.secret = secret
    this.cookies = new Map()
    this.page = { url: new URL('about:blank'), body: '' }
  }

  async #request(url, init = {}) {
    const headers = new Headers(init.headers)
    const mine = [...this.cookies].filter(([key]) => key.startsWith(url.origin + ' '))
    if (mine.length > 0) headers.set('cookie', mine.map(([key, value]) => `${key.split(' ')[1]}=${value}`).join('; '))
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/)
      if (value === '' || /max-age=(0|-)/i.test(line)) this.cookies.delete(`${url.origin} ${name}`)
      else this.cookies.set(`${url.origin} ${name}`, value)
      this.secret(value)
    }
    return response
  }

  // open goes to an address, and on until a page waits for the person or the redirect URI is reached.
  async open(url, init) {
    for (let i = 0; i < 10; i++) {
      if (url.href.startsWith(this.stop + '?')) return (this.page = { url, body: '' })
      const response = await this.#request(url, init)
      const body = await response.text()
      const refresh = body.match(/http-equiv="refresh" content="[^"]*url=([^"]*)"/i)
      const to = response.headers.get('location') ?? (refresh && unescape(refresh[1]))
      if (!to) {
        if (!response.ok) throw new Error(`page ${url.pathname}: status ${response.status}`)
        return (this.page = { url, body })
      }
      url = new URL(to, url)
      init = undefined
    }
    throw new Error('too many redirects')
  }

  // has says whether the page has a form with something in it.
  has(part) {
    return this.#forms().some((form) => form.includes(part))
  }

  #forms() {
    return this.page.body.match(/<form[\s\S]*?<\/form>/g) ?? []
  }

  // submit fills in the form that has this in it, and sends it by its button.
  async submit(part, values = {}) {
    const form = this.#forms().find((f) => f.includes(part))
    const fields = new URLSearchParams()
    for (const input of form.match(/<input[^>]*type="hidden"[^>]*>/g) ?? []) fields.set(attribute(input, 'name'), attribute(input, 'value'))
    for (const button of form.match(/<button[^>]*>/g) ?? []) {
      if (attribute(button, 'value') === part) fields.set(attribute(button, 'name'), part)
    }
    for (const [name, value] of Object.entries(values)) fields.set(name, value)
    return this.open(new URL(attribute(form.match(/<form[^>]*>/)[0], 'action') || this.page.url.href, this.page.url), {
      method: 'POST',
      body: fields,
      headers: { origin: this.page.url.origin },
    })
  }
}
