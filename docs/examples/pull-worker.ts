import { setTimeout as pause } from "node:timers/promises";

/**
 * Executes calls of an `external` tool that has no address: asks what waits, claims it, does it, answers it. Run as
 * many of these as you like: `COLLOQUY_KEY=sk_wsp_… ORDERS_URL=http://… node docs/examples/pull-worker.ts`.
 */
const { COLLOQUY_URL = "http://127.0.0.1:8787", COLLOQUY_KEY = "", ORDERS_URL = "" } = process.env;
const holder = process.env.HOLDER ?? `worker-${process.pid}`;
const leaseSeconds = Number(process.env.LEASE_SECONDS ?? 30);

type Call = { toolCallId: string; name: string; input: { orderId?: string }; claim?: { until: string } };
type Answer = { result: unknown } | { error: { message: string } };

/** What this worker can do, by the tool's name. The call's id is a key that is the same however often it is tried. */
const tools: Record<string, (input: Call["input"], idempotencyKey: string) => Promise<unknown>> = {
  order_status: async ({ orderId = "" }, idempotencyKey) => {
    const url = `${ORDERS_URL}/orders/${encodeURIComponent(orderId)}`;
    const response = await fetch(url, { headers: { "idempotency-key": idempotencyKey } });
    if (!response.ok) throw new Error(`the order system answered ${response.status}`);
    return response.json();
  },
};

const request = (path: string, body?: unknown): Promise<Response> =>
  fetch(`${COLLOQUY_URL}/v1/tool-calls${path}`, {
    headers: { authorization: `Bearer ${COLLOQUY_KEY}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });

const execute = async ({ toolCallId, name, input }: Call): Promise<void> => {
  const claim = (): Promise<Response> => request(`/${toolCallId}/claim`, { holder, leaseSeconds });
  const tool = tools[name];
  // 409: another worker was faster; 410: nobody waits for it any more.
  if (!tool || !(await claim()).ok) return;
  // While this process lives, nobody else takes it. If it dies, the lease ends and another worker does.
  const renew = setInterval(() => void claim().catch(console.error), (leaseSeconds * 1000) / 2);
  const done = tool(input, toolCallId).then((result): Answer => ({ result }));
  const answer = await done.catch((error: Error): Answer => ({ error: { message: error.message } }));
  clearInterval(renew);
  console.log(`${name} ${toolCallId}: ${(await request(`/${toolCallId}/result`, answer)).status}`);
};

/** The list tells of a claim a moment later: what this process has under way, it knows itself. */
const underWay = new Set<string>();
const begin = (call: Call): void => {
  const { toolCallId, claim } = call;
  if (underWay.has(toolCallId) || (claim && Date.parse(claim.until) > Date.now())) return;
  underWay.add(toolCallId);
  const done = (): boolean => underWay.delete(toolCallId);
  void execute(call).catch(console.error).finally(done);
};

for (let cursor = ""; ; ) {
  const response = await request(`?limit=50${cursor}`).catch(console.error);
  type Page = { items: Call[]; nextCursor: string | null };
  const page: Page = response?.ok ? ((await response.json()) as Page) : { items: [], nextCursor: null };
  page.items.forEach(begin);
  cursor = page.nextCursor === null ? "" : `&cursor=${page.nextCursor}`;
  if (cursor === "") await pause(500);
}
