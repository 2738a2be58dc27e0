// What an application does that talks to the hub with oauth4webapi, from the hub's first refusal to its last. Reads a JSON object
// from standard input: { hub, user: { name, password }, app: { id, method, secret?, jwk? }, worker: { id, method, secret },
// redirect_uri, topic }. Prints one line per step, and no secret; secrets go to the file of the checker.
import * as oauth from 'oauth4webapi'
import { appendFileSync, readFileSync } from 'node:fs'
import { Person } from './pages.mjs'

// What a failure says must hold no secret: its message and place do not, its cause may, but for the code of that.
process.on('uncaughtException', (error) => {
  console.error(error.code ?? '', error.error ?? '', error.cause?.code ?? '', error.stack)
  process.exit(1)
})

const input = JSON.parse(readFileSync(0, 'utf8'))
const hub = new URL(input.hub)
const detail = (action) =>
  JSON.stringify([{ type: 'https://mercure.rocks/authorization-detail', actions: [action], topics: [{ match: input.topic }] }])

function secret(...values) {
  const path = process.env.CINNABAR_TEST_SECRETS
  if (path) appendFileSync(path, values.filter(Boolean).map((v) => JSON.stringify(v) + '\n').join(''))
}

function step(text) {
  console.log(text)
}

function check(condition, text) {
  if (!condition) throw new Error(text)
}

// refusal gives the error of something that must be refused.
async function refusal(what, promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error(`${what} was not refused`)
}

async function authentication({ method, secret: s, jwk }) {
  switch (method) {
    case 'none':
      return oauth.None()
    case 'client_secret_basic':
      return oauth.ClientSecretBasic(s)
    case 'client_secret_post':
      return oauth.ClientSecretPost(s)
    case 'private_key_jwt': {
      const key = await crypto.subtle.importKey('jwk', jwk, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])
      return oauth.PrivateKeyJwt({ key, kid: jwk.kid })
    }
  }
  throw new Error(`no method ${method}`)
}

// discover goes from the hub's 401 over its metadata to that of the authorization server.
async function discover() {
  const first = await fetch(hub + '?match=*')
  await first.body?.cancel()
  check(first.status === 401, `the hub answered ${first.status}`)
  const error = await refusal('a made-up token', oauth.protectedResourceRequest('made-up', 'GET', new URL(hub + '?match=*')))
  check(error.code === oauth.WWW_AUTHENTICATE_CHALLENGE && error.status === 401, `unexpected: ${error.code}`)
  const { scheme, parameters } = error.cause[0]
  check(scheme === 'bearer' && parameters.error === 'invalid_token', 'the challenge does not say invalid_token')
  const metadata = parameters.resource_metadata
  check(metadata && first.headers.get('www-authenticate').includes(`resource_metadata="${metadata}"`), 'the 401 names no metadata')
  step('challenge')

  const discovery = await oauth.resourceDiscoveryRequest(hub)
  check(discovery.url === metadata, 'the challenge and RFC 9728 name different documents')
  const resource = await oauth.processResourceDiscoveryResponse(hub, discovery)
  check(resource.authorization_servers.length === 1, 'not one authorization server')
  const issuer = new URL(resource.authorization_servers[0])
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: 'oauth2' }))
  const oidc = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer))
  check(oidc.issuer === as.issuer, 'the two discovery documents differ')
  check(as.code_challenge_methods_supported.includes('S256'), 'PKCE is not advertised')
  check(as.token_endpoint_auth_methods_supported.includes(input.app.method), `${input.app.method} is not advertised`)
  check(as.authorization_details_types_supported.includes('https://mercure.rocks/authorization-detail'), 'the details are not advertised')
  step('metadata')
  return { as, resource: resource.resource }
}

const { as, resource } = await discover()
const app = { client_id: input.app.id }
const appAuth = await authentication(input.app)
const worker = { client_id: input.worker.id }
const workerAuth = await authentication(input.worker)

// validate checks an access token as RFC 9068 says, with the keys that the authorization server publishes.
async function validate(token) {
  const request = new Request(hub, { headers: { authorization: `Bearer ${token}` } })
  return oauth.validateJwtAccessToken(as, request, resource)
}

// login lets a person log in and consent, and redeems the code.
async function login(person) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  secret(verifier, state)
  const parameters = new URLSearchParams({
    client_id: app.client_id,
    redirect_uri: input.redirect_uri,
    response_type: 'code',
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    authorization_details: detail('subscribe'),
    resource,
    state,
  })
  const authorize = new URL(as.authorization_endpoint)
  if (as.pushed_authorization_request_endpoint) {
    const pushed = await oauth.processPushedAuthorizationResponse(as, app, await oauth.pushedAuthorizationRequest(as, app, appAuth, parameters))
    secret(pushed.request_uri)
    authorize.search = new URLSearchParams({ client_id: app.client_id, request_uri: pushed.request_uri })
    step('pushed')
  } else {
    authorize.search = parameters
  }
  await person.open(authorize)
  if (person.has('password')) await person.submit('password', { username: input.user.name, password: input.user.password })
  if (person.has('"allow"')) await person.submit('allow')
  check(person.page.url.href.startsWith(input.redirect_uri), `ended at ${person.page.url.pathname}`)
  secret(person.page.url.searchParams.get('code'))
  step('consent')

  const callback = oauth.validateAuthResponse(as, app, person.page.url, state)
  const response = await oauth.authorizationCodeGrantRequest(as, app, appAuth, callback, input.redirect_uri, verifier, {
    additionalParameters: { resource },
  })
  const tokens = await oauth.processAuthorizationCodeResponse(as, app, response)
  secret(tokens.access_token, tokens.refresh_token)
  check(tokens.refresh_token, 'no refresh token')
  check(tokens.authorization_details?.[0]?.topics?.[0]?.match === input.topic, 'the details are not echoed')
  const claims = await validate(tokens.access_token)
  check(claims.client_id === app.client_id && claims.sub !== app.client_id, 'the token is not for the person and the client')
  step('token')
  return tokens
}

// subscribe opens a stream, and gives a function that reads on until a text has come, or the stream has ended (then false).
async function subscribe(token) {
  const response = await oauth.protectedResourceRequest(token, 'GET', new URL(`${hub}?match=${encodeURIComponent(input.topic)}`))
  check(response.status === 200, `subscribe: ${response.status}`)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return async (wanted) => {
    while (!text.includes(wanted)) {
      const { value, done } = await reader.read().catch(() => ({ done: true }))
      if (done) return false
      text += value
    }
    return true
  }
}

// publishing gets a token for the worker itself.
async function publishing() {
  const request = { authorization_details: detail('publish'), resource }
  const response = await oauth.clientCredentialsGrantRequest(as, worker, workerAuth, request)
  const tokens = await oauth.processClientCredentialsResponse(as, worker, response)
  secret(tokens.access_token)
  check(!tokens.refresh_token, 'a refresh token for client credentials')
  const claims = await validate(tokens.access_token)
  check(claims.sub === worker.client_id, 'the token is not for the worker')
  return tokens.access_token
}

async function publish(token, data) {
  const body = new URLSearchParams({ topic: input.topic, data, private: 'on' })
  const response = await oauth.protectedResourceRequest(token, 'POST', hub, new Headers(), body)
  check(response.status === 200, `publish: ${response.status}`)
  return response.text()
}

// refused waits until the hub refuses a token; a revocation may take a moment to arrive.
async function refused(token) {
  for (const end = Date.now() + 10_000; ; ) {
    try {
      const response = await oauth.protectedResourceRequest(token, 'GET', new URL(`${hub}?match=*`))
      await response.body.cancel()
    } catch (error) {
      check(error.code === oauth.WWW_AUTHENTICATE_CHALLENGE && error.cause[0].parameters.error === 'invalid_token', `unexpected: ${error.code}`)
      return
    }
    check(Date.now() < end, 'the hub still accepts the token')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const person = new Person(input.redirect_uri, secret)
const tokens = await login(person)
const read = await subscribe(tokens.access_token)
const publisher = await publishing()
step('client credentials')
await publish(publisher, 'the first of two')
check(await read('data: the first of two'), 'the stream has ended')
step('event')

const again = await oauth.processRefreshTokenResponse(
  as, app, await oauth.refreshTokenGrantRequest(as, app, appAuth, tokens.refresh_token, { additionalParameters: { resource } }))
secret(again.access_token, again.refresh_token)
check(again.access_token !== tokens.access_token, 'the same access token again')
if (input.app.method === 'none') check(again.refresh_token && again.refresh_token !== tokens.refresh_token, 'the refresh token is not rotated')
await validate(again.access_token)
const reread = await subscribe(again.access_token)
await publish(publisher, 'the second of two')
check((await reread('data: the second of two')) && (await read('data: the second of two')), 'a stream has ended')
step('refresh')

const refresh = again.refresh_token ?? tokens.refresh_token
await oauth.processRevocationResponse(await oauth.revocationRequest(as, app, appAuth, refresh, { additionalParameters: { token_type_hint: 'refresh_token' } }))
const error = await refusal('a revoked refresh token', oauth.refreshTokenGrantRequest(as, app, appAuth, refresh)
  .then((response) => oauth.processRefreshTokenResponse(as, app, response)))
check(error.code === oauth.RESPONSE_BODY_ERROR && error.error === 'invalid_grant', `unexpected: ${error.code} ${error.error}`)
await refused(tokens.access_token)
await refused(again.access_token)
check(!(await read('never')) && !(await reread('never')), 'the streams live on')
step('revoked')

await oauth.processRevocationResponse(await oauth.revocationRequest(as, worker, workerAuth, publisher))
for (let i = 0; ; i++) {
  try {
    await publish(publisher, 'too late')
  } catch (e) {
    check(e.code === oauth.WWW_AUTHENTICATE_CHALLENGE, `unexpected: ${e.code}`)
    break
  }
  check(i < 200, 'the hub still accepts the token')
  await new Promise((resolve) => setTimeout(resolve, 50))
}
step('access token revoked')
