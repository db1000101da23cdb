import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { call, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0)) await end();
});

type Heard = { event: string; id?: string; data: Record<string, unknown> };

/** Reads an event stream as a browser does: `next` waits for the next event that is no comment. */
const listen = (response: Response) => {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) throw new Error("an event stream was expected");
  ending.push(() => reader.cancel());
  let text = "";
  const next = async (): Promise<Heard | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const fields = new Map(
          text
            .slice(0, end)
            .split("\n")
            .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
        );
        text = text.slice(end + 2);
        const [event, data, id] = [fields.get("event"), fields.get("data"), fields.get("id")];
        if (event && data) return { event, data: JSON.parse(data) as Record<string, unknown>, ...(id ? { id } : {}) };
        continue;
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
    }
  };
  const until = async (event: string): Promise<Heard> => {
    for (;;) {
      const heard = await next();
      if (!heard) throw new Error(`the stream ended before ${event}`);
      if (heard.event === event) return heard;
    }
  };
  return { next, until };
};

test("[D3] Server-Sent Events carry the frames, and their ids resume where the client was", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  const path = `/v1/spaces/${id}/events`;
  const answer = await call(`${path}?token=${mona.token}`);
  expect(answer.headers.get("content-type")).toContain("text/event-stream");
  const events = listen(answer);
  expect(await events.next()).toMatchObject({ event: "welcome", data: { space: { id }, you: { id: mona.id } } });
  await house.say(id, mona, "first");
  const first = await events.until("space.message");
  expect(first).toMatchObject({ id: String(first.data.cursor), data: { message: { text: "first" } } });

  await house.say(id, mona, "second\nwith two lines");
  const resumed = listen(
    await call(`${path}?cursor=0`, { bearer: mona.token, headers: { "last-event-id": first.id ?? "" } }),
  );
  expect(await resumed.next()).toMatchObject({ event: "welcome", data: { resumed: true } });
  expect(await resumed.until("space.message")).toMatchObject({ data: { message: { text: "second\nwith two lines" } } });
});

test("[S5] a removed member is told why its stream ends", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  const events = listen(await call(`/v1/spaces/${id}/events`, { bearer: mona.token }));
  await events.until("welcome");
  await call(`/v1/entities/${mona.id}`, { method: "DELETE", bearer: house.secretKey });
  expect(await events.until("closed")).toMatchObject({ data: { code: 4403, reason: expect.any(String) } });
  expect(await events.next()).toBeUndefined();
});

test("[S4] a malformed cursor is refused before a stream opens", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  for (const [end, headers] of [
    ["events?cursor=x", {}],
    ["events", { "last-event-id": "1.5" }],
    ["stream?cursor=-1", { upgrade: "websocket" }],
  ] as const) {
    const answer = await call(`/v1/spaces/${id}/${end}`, { bearer: mona.token, headers });
    expect(await problemIn(answer), end).toMatchObject({ code: "invalid_cursor" });
  }
});

test("a WebSocket is the space's own, opened with a token in the query", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  const answer = await call(`/v1/spaces/${id}/stream?token=${mona.token}`, { headers: { upgrade: "websocket" } });
  expect(answer.status).toBe(101);
  const socket = answer.webSocket;
  if (!socket) throw new Error("a socket was expected");
  ending.push(() => socket.close());
  const frames: { type: string; clientKey?: string; message?: { text: string } }[] = [];
  const said = Promise.withResolvers<string>();
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(String(data)) as (typeof frames)[number];
    frames.push(frame);
    if (frame.type === "space.message") said.resolve(frame.message?.text ?? "");
  });
  socket.accept();
  socket.send(JSON.stringify({ type: "message.send", clientKey: "k", text: "over the socket" }));
  expect(await said.promise).toBe("over the socket");
  expect(frames[0]?.type).toBe("welcome");
});

test("a HEAD of the events answers their headers and leaves nothing open", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  const events = await call(`/v1/spaces/${id}/events`, { method: "HEAD", bearer: mona.token });
  expect([events.status, events.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  const sockets = await runInDurableObject(
    env.SPACE.getByName(id) as unknown as DurableObjectStub,
    (_, state) => state.getWebSockets().filter((socket) => socket.readyState === WebSocket.OPEN).length,
  );
  expect(sockets).toBe(0);
});
