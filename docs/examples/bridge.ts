import { createServer, type IncomingMessage } from "node:http";
import { Webhook } from "standardwebhooks";

/**
 * Carries a space to a chat system of another kind, and back (docs/endpoints.md). An endpoint tells it what is said in the space,
 * and the chat system posts to /chat what is said there: `COLLOQUY_KEY=sk_… SPACE_ID=spc_… SERVICE_ID=ent_…
 * ENDPOINT_SECRET=whsec_… CHAT_URL=https://… node docs/examples/bridge.ts`. It keeps nothing. Both sides send again until
 * they are answered, and know each message by its id: a crash loses none and says none twice.
 */
const { COLLOQUY_URL = "http://127.0.0.1:8787", COLLOQUY_KEY = "", SPACE_ID = "", SERVICE_ID = "" } = process.env;
const { ENDPOINT_SECRET = "", CHAT_URL = "" } = process.env;

/** `root`: what it came of here, where it came from here. */
type ChatMessage = { id: string; author: string; text: string; replyTo?: string; root?: string };
type Said = { id: string; text?: string; sender: { id: string; name: string } };
type SpaceEvent = { type: string; data: { spaceId: string; message: Said; root?: string } };

const json = { "content-type": "application/json" };

const sent = async (url: string, headers: Record<string, string>, body: unknown): Promise<Response> => {
  const response = await fetch(url, { method: "POST", headers: { ...json, ...headers }, body: JSON.stringify(body) });
  if (response.status >= 500) throw new Error(`${url}: ${response.status}`);
  return response;
};

/** From the space to the chat. What this bridge said in the space itself is there already. */
const carryOut = async ({ type, data: { spaceId, message, root } }: SpaceEvent): Promise<void> => {
  if (type !== "space.message" || spaceId !== SPACE_ID || message.sender.id === SERVICE_ID || !message.text) return;
  await sent(`${CHAT_URL}/messages`, {}, { id: message.id, author: message.sender.name, text: message.text, root });
};

/** From the chat to the space. What has a root came from a space, by this bridge or by another one: it is not said again. */
const carryIn = async ({ id, author, text, replyTo, root }: ChatMessage): Promise<void> => {
  if (root !== undefined) return;
  const asked = replyTo === undefined ? undefined : await fetch(`${CHAT_URL}/messages/${replyTo}`);
  const repliedTo = asked?.ok ? ((await asked.json()) as ChatMessage) : undefined;
  const url = `${COLLOQUY_URL}/v1/spaces/${SPACE_ID}/messages`;
  const headers = { authorization: `Bearer ${COLLOQUY_KEY}`, "x-entity-id": SERVICE_ID, "idempotency-key": id };
  const body = { text: `${author}: ${text}` };
  // A reply to one of our messages passes its root on. So agents on both sides do not wake each other for ever.
  const chained = repliedTo?.root === undefined ? headers : { ...headers, "colloquy-root": repliedTo.root };
  const response = await sent(url, chained, body);
  // A root is good for a day.
  const answer = response.status === 400 && chained !== headers ? await sent(url, headers, body) : response;
  if (!answer.ok) console.error(`${id} was refused: ${await answer.text()}`);
};

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
};

/** Where it throws, the sender is told 500, and sends again. */
const handle = async (request: IncomingMessage): Promise<number> => {
  const text = await textOf(request);
  if (request.url === "/chat") await carryIn(JSON.parse(text) as ChatMessage);
  else {
    let event: SpaceEvent;
    try {
      event = new Webhook(ENDPOINT_SECRET).verify(text, request.headers as Record<string, string>) as SpaceEvent;
    } catch {
      return 401;
    }
    await carryOut(event);
  }
  return 204;
};

const server = createServer((request, response) => {
  void handle(request)
    .catch((error: unknown) => {
      console.error(error);
      return 500;
    })
    .then((status) => response.writeHead(status).end());
});
server.listen(Number(process.env.PORT ?? 9100), "127.0.0.1", () => console.log(JSON.stringify(server.address())));
