import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { newHookSecret } from "../../src/auth/webhooks/schemes.ts";
import { answerMs, disableAfterMs, maxAnswerBytes } from "../../src/endpoint/bounds.ts";
import { envelopesOf, retryAt, send } from "../../src/endpoint/send.ts";
import { systemClock } from "../../src/shared/clock.ts";

/** One request to a server that misbehaves, and when it is made again. */
const serve = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
};
const to = (url: string, allowLoopback = true) =>
  send(
    { id: "one", body: "{}" },
    { url, secrets: [newHookSecret("standard")], allowLoopback },
    { clock: systemClock, fetch },
  );

test("[S3] [E2] a private address is not asked, and a redirect is an answer that does not count", async () => {
  let asked = 0;
  const url = await serve((_, response) => {
    asked += 1;
    response.writeHead(307, { location: "/elsewhere" }).end();
  });
  expect(await to(url, false)).toMatchObject({ isDelivered: false, error: expect.stringContaining("own address") });
  for (const address of ["http://10.0.0.1/", "https://169.254.169.254/x", "https://user:pass@a.example/"]) {
    expect(await to(address)).toMatchObject({
      isDelivered: false,
      error: expect.stringContaining("could not be asked"),
    });
  }
  expect(asked).toBe(0);
  expect(await to(url)).toMatchObject({ isDelivered: false, status: 307, error: expect.stringContaining("redirects") });
  expect(asked).toBe(1);
});

test("[E2] of an answer of 10 MB the beginning is read, and one that goes on for ever counts", async () => {
  let written = 0;
  const url = await serve((request, response) => {
    response.writeHead(request.url === "/" ? 200 : 500);
    const pour = (): void => {
      while (!response.destroyed && written < 10_000_000) {
        written += 16_384;
        if (!response.write("x".repeat(16_384))) return void response.once("drain", pour);
      }
    };
    pour();
  });
  const sent = await to(url);
  expect(sent).toMatchObject({ isDelivered: true, status: 200 });
  expect(sent.answer).toBe("x".repeat(maxAnswerBytes));
  expect(written).toBeLessThan(10_000_000);
});

test("[E2] a server that never answers, or hangs up, is given up in time", async () => {
  const cut = await to(await serve((_, response) => void response.socket?.destroy()));
  expect(cut).toMatchObject({ isDelivered: false, error: expect.stringContaining("could not be reached") });
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const over = new AbortController();
    setTimeout(() => over.abort(), ms === answerMs ? 50 : ms);
    return over.signal;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const silent = await to(await serve(() => undefined));
  expect(silent).toEqual({ isDelivered: false, ms: expect.any(Number), error: "It did not answer within 15 s" });
});

test("[E2] pauses are 5 s, 1 min, 10 min, 1 h, 3 h, then 12 h; the last try is at three days", () => {
  const pauses: (number | undefined)[] = [];
  let [now, failures] = [0, 1];
  for (let next = retryAt(1, 0, 0); next !== undefined; next = retryAt(failures, 0, now)) {
    pauses.push((next - now) / 1000);
    [now, failures] = [next, failures + 1];
  }
  expect(pauses.slice(0, 7)).toEqual([5, 60, 600, 3600, 10_800, 43_200, 43_200]);
  expect(now).toBe(disableAfterMs);
});

test("[E1] a batch has 20 events at most, and the same events have the same id", () => {
  const events = Array.from({ length: 45 }, (_, index) => ({ id: `s_${index}`, seq: index, type: "t", data: "{}" }));
  const batches = envelopesOf(events, true);
  expect(batches.map((each) => [each.id, each.events.length])).toEqual([
    ["s_0-s_19", 20],
    ["s_20-s_39", 20],
    ["s_40-s_44", 5],
  ]);
  expect(JSON.parse(batches[2]?.body ?? "")).toMatchObject({ type: "batch", data: [{ id: "s_40" }, {}, {}, {}, {}] });
  expect(envelopesOf(events, false)).toHaveLength(45);
});
