import { beforeAll, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { counted } from "./counted.ts";
import { entity, grow, type House, heardBy, house, recordReceivers, said, settled } from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);

const ann = entity("human", "Ann");
const ben = entity("human", "Ben");

test("[B4] what a space costs does not grow with its history", async () => {
  const robo = entity("agent", "Robo");
  const home = await house([ann, ben, robo]);
  const use = async (round: string): Promise<Record<string, number>> => {
    const rows: Record<string, number> = {};
    const measure = async (name: string, act: () => Promise<unknown>) => {
      rows[name] = (await counted(home, act)).rowsRead;
    };
    await measure("post", async () => {
      unwrap(await home.rpc.post(home.as(ann), { text: `hello @Robo ${round}` }));
      await vi.waitUntil(() => heardBy(robo).at(-1)?.endsWith(round));
    });
    await measure("append", () => home.rpc.append(said(home, robo, `hello ${round}`)));
    await measure("newest page", () => home.rpc.list(home.as(ann), { limit: 2 }));
    await measure("older page", () => home.rpc.list(home.as(ann), { limit: 2, before: 6 }));
    await measure("newer page", () => home.rpc.list(home.as(ann), { limit: 2, after: 4 }));
    await measure("latest", () => home.rpc.latest(home.as(ben)));
    const { lastMessage } = unwrap(await home.rpc.latest(home.as(ben)));
    await measure("reads", () => home.rpc.reads(home.as(ben), lastMessage?.id ?? ""));
    await measure("window", () => home.rpc.window(home.workspaceId, robo.id, { limit: 2, offset: 1 }));
    await measure("connect", () => listen(home, home.as(ben)));
    return rows;
  };
  const markAll = async (): Promise<void> => {
    const { lastMessage } = unwrap(await home.rpc.latest(home.as(ben)));
    unwrap(await home.rpc.markRead(home.as(ben), lastMessage?.id ?? ""));
  };
  for (const round of ["one", "two", "three"]) await use(round);
  await markAll();
  const short = await use("short");
  await chatter(home, 600);
  await settled(home);
  await grow(home, 20_000);
  await markAll();
  unwrap(await home.rpc.post(home.as(ann), { text: "hello @Robo again" }));
  await vi.waitUntil(() => heardBy(robo).at(-1)?.endsWith("again"), { timeout: 10_000 });
  await markAll();
  const long = await use("long");
  for (const [name, rows] of Object.entries(long))
    expect([name, rows <= (short[name] ?? 0) + 12]).toEqual([name, true]);
});

/** Many messages at once, as a long life would have left them. */
const chatter = async (home: House, messages: number): Promise<void> => {
  for (let index = 0; index < messages; index += 100) {
    const posts = Array.from({ length: 100 }, (_, offset) =>
      home.rpc.post(home.as(ann), { text: `message ${index + offset}` }),
    );
    await Promise.all(posts);
  }
};

test("a person's message and one agent's answer write at most ten rows here", async () => {
  const robo = entity("agent", "Robo");
  const home = await house([ann, ben, robo]);
  await vi.waitUntil(async () => (await counted(home, async () => undefined)).rowsWritten === 0);
  const { rowsWritten } = await counted(home, async () => {
    unwrap(await home.rpc.post(home.as(ann), { text: "hello", clientKey: "k1" }));
    await vi.waitUntil(() => heardBy(robo).length === 1);
    unwrap(await home.rpc.append(said(home, robo, "hello yourself")));
  });
  expect(rowsWritten).toBeLessThanOrEqual(10);
});

test("[B4] unread counts stop at 99, and one's own messages do not count", async () => {
  const home = await house([ann, ben]);
  const unread = async () => unwrap(await home.rpc.latest(home.as(ben))).unreadCount;
  expect(await unread()).toBe(0);
  unwrap(await home.rpc.post(home.as(ann), { text: "one" }));
  unwrap(await home.rpc.post(home.as(ben), { text: "mine" }));
  const { message } = unwrap(await home.rpc.post(home.as(ann), { text: "two" }));
  expect(await unread()).toBe(2);
  unwrap(await home.rpc.markRead(home.as(ben), message.id));
  expect(await unread()).toBe(0);
  await chatter(home, 200);
  expect(await unread()).toBe(99);
});

test("[B3] [D3] a socket that is too many bytes behind is told so at a bounded cost", async () => {
  const home = await house([ann, ben]);
  const text = "x".repeat(32 * 1024);
  for (let round = 0; round < 4; round += 1) {
    await Promise.all(Array.from({ length: 100 }, () => home.rpc.post(home.as(ann), { text })));
  }
  await settled(home);
  let late: Awaited<ReturnType<typeof listen>> | undefined;
  const { rowsRead } = await counted(home, async () => {
    late = await listen(home, home.as(ben), "?cursor=0");
  });
  expect(late?.of("welcome")[0]).toMatchObject({ resumed: false });
  expect(rowsRead).toBeLessThan(300);
});
