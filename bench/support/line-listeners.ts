import { type Listening, openSockets } from "./sockets.ts";

/**
 * Many sockets in a process of their own (`lines.bench.ts` begins it): what reads their frames takes no time of those
 * who post. It is sent the addresses to open, then `take` for what came since the last time.
 */
export type Asked = { open: string[] } | "take";

/** What one socket was told, in order: of what (a space's id, or nothing), its number there, and when. */
export type Heard = { of: string; seq: number; at: number }[];

const atOnce = 25;
const sockets: Listening[] = [];

type Frame = { type: string; spaceId?: string; seq?: number; id?: number };

const take = ({ frames }: Listening): Heard =>
  frames.splice(0).flatMap(({ data, at }) => {
    const { type, spaceId = "", seq, id } = JSON.parse(data.toString()) as Frame;
    return type === "space.summary" || type === "message" ? [{ of: spaceId, seq: seq ?? id ?? 0, at }] : [];
  });

process.on("message", async (asked: Asked) => {
  if (asked === "take") return process.send?.(sockets.map(take));
  const waiting = [...asked.open.entries()];
  const openNext = async (): Promise<void> => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [index, url] = next;
      [sockets[index]] = (await openSockets(url, 1)) as [Listening];
    }
  };
  await Promise.all(Array.from({ length: atOnce }, openNext));
  process.send?.("open");
});
