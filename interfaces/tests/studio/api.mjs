// A small shop with a live API over real HTTP: what a studio test calls, and what it must not call.
import { createServer } from "node:http";

/** The specification of the shop, with its server and its sign-in at `origin`. */
export const specificationOf = (origin) => `openapi: 3.0.3
info: {title: Corner shop, version: 1.2.0, description: Books and authors of a corner shop.}
servers: [{url: "${origin}/v1", description: Test}]
security: [{token: []}]
paths:
  /books:
    get:
      tags: [Books]
      operationId: listBooks
      summary: List books
      responses:
        '200': {description: All books, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Book'}}}}}
        '401': {description: Sign in first}
    post:
      tags: [Books]
      operationId: createBook
      summary: Add a book
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/NewBook'}}}}
      responses:
        '201': {description: Created, content: {application/json: {schema: {$ref: '#/components/schemas/Book'}}}}
        '422': {description: Invalid}
  /books/{bookId}:
    get:
      tags: [Books]
      operationId: getBook
      summary: One book
      parameters: [{name: bookId, in: path, required: true, schema: {type: integer}}]
      responses:
        '200': {description: The book, content: {application/json: {schema: {$ref: '#/components/schemas/Book'}}}}
  /authors:
    get:
      tags: [Authors]
      operationId: listAuthors
      summary: List authors
      responses:
        '200': {description: All authors, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Author'}}}}}
components:
  securitySchemes:
    token: {type: http, scheme: bearer, description: A token from your account page.}
    login:
      type: oauth2
      flows:
        authorizationCode:
          authorizationUrl: "${origin}/login/authorize"
          tokenUrl: "${origin}/login/token"
          scopes: {books: Read and add books}
  schemas:
    NewBook:
      type: object
      required: [title]
      properties: {title: {type: string}, price: {type: number}}
    Book:
      type: object
      properties: {id: {type: integer}, title: {type: string}, price: {type: number}}
    Author:
      type: object
      properties: {id: {type: integer}, name: {type: string}}
`;

/** Starts the shop. `tokens` are accepted; `fail` is a status to answer with instead; `calls` is what came. */
export async function startShop() {
  const shop = { tokens: new Set(["first-secret"]), fail: 0, delay: 0, calls: [], books: [], hits: [], documents: new Map(), streams: 0, nextToken: "second-secret" };
  for (let id = 1; id <= 12; id += 1) shop.books.push({ id, title: `Book number ${id}`, price: id + 0.5 });
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => setTimeout(() => answer(shop, request, response, Buffer.concat(parts).toString()), shop.delay));
  }).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  shop.origin = `http://127.0.0.1:${server.address().port}`;
  shop.stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return shop;
}

function answer(shop, request, response, body) {
  const url = new URL(request.url, shop.origin);
  const json = (status, value, headers = {}) => response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(value));
  if (shop.documents.has(url.pathname)) return response.writeHead(200, { "Content-Type": "text/yaml" }).end(shop.documents.get(url.pathname));
  if (url.pathname.startsWith("/attack")) {
    shop.hits.push(`${request.method} ${request.url}`);
    return json(200, {});
  }
  if (url.pathname === "/login/authorize") return authorize(shop, url, response);
  if (url.pathname === "/login/token") return giveToken(shop, body, json);
  if (!url.pathname.startsWith("/v1")) return json(404, {});
  shop.calls.push({ method: request.method, path: url.pathname, query: url.search.replaceAll("+", " "), headers: request.headers, body });
  if (shop.fail !== 0) return json(shop.fail, { message: "The shop is closed for a moment." });
  if (!shop.tokens.has(credentialOf(request, url))) return json(401, { message: "Sign in to see the books." });
  const id = /^\/v1\/books\/(\d+)$/.exec(url.pathname)?.[1];
  if (id !== undefined) return json(200, shop.books.find((book) => book.id === Number(id)) ?? {});
  if (url.pathname === "/v1/ticks") return stream(shop, request, response);
  if (url.pathname === "/v1/authors") return json(200, [{ id: 1, name: "Ada Quill" }]);
  if (request.method !== "POST") return json(200, shop.books);
  const given = JSON.parse(body);
  if (String(given.title).length < 3) return json(422, { message: "The title is too short.", errors: { title: "Write at least three letters." } });
  const book = { id: shop.books.length + 1, ...given };
  shop.books.push(book);
  return json(201, book);
}

/** A bearer token, an API key, or `name:password`. */
function credentialOf(request, url) {
  const { authorization = "" } = request.headers;
  const [, kind, text] = /^(Bearer|Basic) (.+)$/.exec(authorization) ?? [];
  if (kind === "Bearer") return text;
  if (kind === "Basic") return Buffer.from(text, "base64").toString();
  return request.headers["x-api-key"] ?? url.searchParams.get("api_key");
}

/** One event at once, others by `shop.tick`, until the reader goes away. */
function stream(shop, request, response) {
  shop.streams += 1;
  response.on("close", () => (shop.streams -= 1));
  shop.tick = (text) => response.write(`data: ${text}\n\n`);
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  shop.tick("first tick");
}

/** The sign-in page of the API says yes at once. */
function authorize(shop, url, response) {
  shop.authorized = Object.fromEntries(url.searchParams);
  const back = new URL(url.searchParams.get("redirect_uri"));
  back.searchParams.set("code", "the-code");
  back.searchParams.set("state", url.searchParams.get("state"));
  response.writeHead(302, { Location: back.href }).end();
}

function giveToken(shop, body, json) {
  shop.tokenRequest = Object.fromEntries(new URLSearchParams(body));
  shop.tokens = new Set([shop.nextToken]);
  return json(200, { access_token: shop.nextToken, token_type: "Bearer", expires_in: 3600 });
}
