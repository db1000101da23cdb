import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";

/**
 * Executes calls of an `external` tool that are sent here, signed as Standard Webhooks. Answers in the response what is
 * done soon, and posts the rest later: `TOOL_SECRET=whsec_… COLLOQUY_KEY=sk_wsp_… ORDERS_URL=http://… PORT=9000 node
 * docs/examples/push-server.ts`.
 */
const { COLLOQUY_URL = "http://127.0.0.1:8787", COLLOQUY_KEY = "", ORDERS_URL = "", TOOL_SECRET = "" } = process.env;
const soonMs = Number(process.env.SOON_MS ?? 5000);
const windowSeconds = 300;

type Call = { toolCallId: string; name: string; input: { orderId?: string } };
type Answer = { result: unknown } | { error: { message: string } };

const isSigned = (headers: IncomingHttpHeaders, body: string): boolean => {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  // Written so that what is no number is refused too.
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= windowSeconds)) return false;
  const key = Buffer.from(TOOL_SECRET.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest();
  return String(signatures)
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"))
    .map((signature) => Buffer.from(signature.slice(3), "base64"))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
};

const execute = async ({ toolCallId, name, input }: Call): Promise<Answer> => {
  try {
    if (name !== "order_status") throw new Error(`there is no tool ${name} here`);
    const url = `${ORDERS_URL}/orders/${encodeURIComponent(input.orderId ?? "")}`;
    const response = await fetch(url, { headers: { "idempotency-key": toolCallId } });
    if (!response.ok) throw new Error(`the order system answered ${response.status}`);
    return { result: await response.json() };
  } catch (error) {
    return { error: { message: String(error) } };
  }
};

/** By id: a call that is sent again, because no answer came through, is not done again. */
const memoryMs = 3_600_000;
const begun = new Map<string, Promise<Answer>>();

const answerLater = async ({ name, toolCallId }: Call, answer: Answer): Promise<void> => {
  const response = await fetch(`${COLLOQUY_URL}/v1/tool-calls/${toolCallId}/result`, {
    method: "POST",
    headers: { authorization: `Bearer ${COLLOQUY_KEY}`, "content-type": "application/json" },
    body: JSON.stringify(answer),
  });
  console.log(`${name} ${toolCallId}: ${response.status}`);
};

const handle = async (request: IncomingMessage): Promise<[status: number, body: unknown]> => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  if (!isSigned(request.headers, body)) return [401, { message: "the signature does not fit" }];
  const call = (JSON.parse(body) as { data: Call }).data;
  const work = begun.get(call.toolCallId) ?? execute(call);
  begun.set(call.toolCallId, work);
  void work.finally(() => setTimeout(() => begun.delete(call.toolCallId), memoryMs).unref());
  const soon = await Promise.race([work, new Promise<null>((late) => setTimeout(late, soonMs, null))]);
  if (soon) return [200, soon];
  void work.then((answer) => answerLater(call, answer)).catch(console.error);
  return [202, {}];
};

const server = createServer((request, response) => {
  void handle(request)
    .catch((error: unknown): [number, unknown] => [500, { message: String(error) }])
    .then(([status, body]) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
    );
});
server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1", () => console.log(JSON.stringify(server.address())));
