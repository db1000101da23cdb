import { describe, expect, test } from "vitest";
import { fetchOutgoing, maxRedirects, type OutgoingRequest } from "../../src/shared/fetch-outgoing.ts";

type Sent = { url: string; method: string; headers: Record<string, string>; body: string | undefined };

/** A network in which each address answers as it is written here; whoever is not in it cannot be reached. */
const network = (answers: Record<string, Response | (() => Response)>) => {
  const sent: Sent[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const url = String(input);
    const headers = Object.fromEntries(new Headers(init?.headers));
    sent.push({ url, method: init?.method ?? "", headers, body: init?.body?.toString() });
    expect(init?.redirect).toBe("manual");
    const answer = answers[url];
    if (answer === undefined) throw new TypeError(`no route to ${url}`);
    return typeof answer === "function" ? answer() : answer;
  };
  return { fetch, sent };
};

const to = (location: string, status = 302): Response => new Response("moved", { status, headers: { location } });
const fine = () => new Response("fine");

const post: OutgoingRequest = {
  method: "POST",
  url: "https://api.example.com/a?key=hush",
  headers: [
    ["authorization", "Bearer hush"],
    ["x-api-key", "hush"],
    ["content-type", "application/json"],
    ["accept", "text/plain"],
  ],
  body: '{"a":1}',
};

const ask = async (
  answers: Record<string, Response | (() => Response)>,
  request: Partial<OutgoingRequest> = {},
  options: Partial<Parameters<typeof fetchOutgoing>[1]> = {},
) => {
  const { fetch, sent } = network(answers);
  const { signal } = new AbortController();
  const answer = await fetchOutgoing({ ...post, ...request }, { allowLoopback: false, ...options, fetch, signal });
  return { answer, sent, text: answer.ok ? await answer.response.text() : answer.reason };
};

describe("fetchOutgoing", () => {
  test.each(
    `
    http://api.example.com/ https://user:pass@api.example.com/ https://127.0.0.1/ https://localhost:8080/
    https://10.0.0.1/ https://169.254.169.254/latest/meta-data https://168.63.129.16/metadata https://100.64.0.1/
    https://[::ffff:10.0.0.1]/ https://2130706433/ https://0x7f.1/ https://017700000001/
    https://metadata.google.internal/ https://127.0.0.1.nip.io/ https://api.prod.svc/ https://router/
  `
      .trim()
      .split(/\s+/),
  )("[S3] [C16] %s is never asked, nor redirected to", async (url) => {
    const first = await ask({}, { url });
    expect([first.answer.ok, first.sent]).toEqual([false, []]);
    const then = await ask({ [post.url]: to(url) });
    expect([then.answer.ok, then.sent.length]).toEqual([false, 1]);
    expect(then.text).toMatch(/^it redirects, and there /);
    expect(then.text).not.toContain("pass");
  });

  test("[S3] loopback is allowed in development, but never as a redirect's target", async () => {
    const url = "http://127.0.0.1:8080/a";
    expect((await ask({ [url]: fine }, { url }, { allowLoopback: true })).text).toBe("fine");
    const there = { [post.url]: to(url), [url]: to("/b"), "http://127.0.0.1:8080/b": fine };
    expect((await ask(there, { url }, { allowLoopback: true })).text).toMatch(/^it redirects, and there /);
    expect((await ask(there, {}, { allowLoopback: true })).text).toMatch(/^it redirects, and there /);
  });

  test("[S3] a redirect within an origin keeps all headers; to another, the caller's are dropped", async () => {
    const { sent, text } = await ask({
      [post.url]: to("/b", 307),
      "https://api.example.com/b": to("https://other.example/c", 308),
      "https://other.example/c": to("https://api.example.com/d", 307),
      "https://api.example.com/d": fine,
    });
    expect(text).toBe("fine");
    const whole = Object.fromEntries(post.headers);
    const harmless = { accept: "text/plain", "content-type": "application/json" };
    expect(sent.map(({ url, method, headers, body }) => [url, method, headers, body])).toEqual([
      [post.url, "POST", whole, post.body],
      ["https://api.example.com/b", "POST", whole, post.body],
      ["https://other.example/c", "POST", harmless, post.body],
      ["https://api.example.com/d", "POST", harmless, post.body],
    ]);
  });

  test.each([
    ["https://api.example.com:8443/a", "another port"],
    ["https://evil.example/a", "another host"],
  ])("[S3] %s is %s: no body with a secret goes there", async (target) => {
    const { answer, text, sent } = await ask({ [post.url]: to(target, 307) }, {}, { confidential: true });
    expect([answer.ok, sent.length]).toEqual([false, 1]);
    expect(text).toContain("a secret is in it");
    const seeOther = await ask({ [post.url]: to(target, 303), [target]: fine }, {}, { confidential: true });
    expect(seeOther.sent[1]).toEqual({
      url: target,
      method: "GET",
      headers: { accept: "text/plain" },
      body: undefined,
    });
  });

  test("[S3] [L9] a secret goes to another origin neither in the address nor in a harmless header", async () => {
    const holdsSecret = (text: string) => text.includes("Hush");
    for (const target of ["https://evil.example/?got=Hush", "https://Hush.evil.example/"]) {
      const { answer, text, sent } = await ask({ [post.url]: to(target), [target]: fine }, {}, { holdsSecret });
      expect([answer.ok, sent.length]).toEqual([false, 1]);
      expect(text).toContain("a secret is in it");
    }
    const headers: [string, string][] = [
      ["User-Agent", "Hush"],
      ["accept", "text/plain"],
    ];
    const there = { [post.url]: to("https://other.example/c"), "https://other.example/c": fine };
    const followed = await ask(there, { method: "GET", headers }, { holdsSecret });
    expect(followed.sent[1]?.headers).toEqual({ accept: "text/plain" });
  });

  test.each([307, 303])("[C2] what people approved for one origin is asked of no other (%i)", async (status) => {
    const there = { [post.url]: to("/b", 307), "https://api.example.com/b": to("https://evil.example/a", status) };
    const { answer, text, sent } = await ask(there, {}, { approved: true });
    expect([answer.ok, sent.length]).toEqual([false, 2]);
    expect(text).toContain("than the one that people approved");
  });

  test.each([
    [301, "POST", "GET"],
    [302, "POST", "GET"],
    [303, "PUT", "GET"],
    [301, "PUT", "PUT"],
    [307, "POST", "POST"],
    [308, "DELETE", "DELETE"],
  ])("a %i after a %s is followed by a %s", async (status, method, next) => {
    const { sent } = await ask({ [post.url]: to("/b", status), "https://api.example.com/b": fine }, { method });
    expect(sent[1]).toMatchObject({ method: next, body: next === "GET" ? undefined : post.body });
  });

  test.each<[string, Parameters<typeof ask>, boolean]>([
    ["one that is refused", [{}, { url: "https://10.0.0.1/" }], false],
    ["one that fails in the network", [{}], true],
    ["one that is answered", [{ [post.url]: fine }], false],
    ["one passed on to a refused address", [{ [post.url]: to("https://10.0.0.1/", 308) }], false],
    ["one passed on into nothing", [{ [post.url]: to("/b", 307) }], true],
    ["one whose next page is to be read", [{ [post.url]: to("https://10.0.0.1/", 303) }], true],
    ["one whose next page may be read", [{ [post.url]: to("/b", 302), "https://api.example.com/b": fine }], true],
  ])("[R3] it tells whether a request may have been taken: %s", async (_, asked, taken) => {
    expect((await ask(...asked)).answer.taken).toBe(taken);
  });

  test("[B3] redirects without end are left after maxRedirects", async () => {
    const { answer, sent, text } = await ask({ [post.url]: () => to(post.url, 307) });
    expect([answer.ok, sent.length]).toEqual([false, maxRedirects + 1]);
    expect(text).toContain("maxRedirects");
  });

  test("[S4] a bad redirect and a failing network are reported without the address", async () => {
    expect((await ask({ [post.url]: new Response("", { status: 302 }) })).answer).toMatchObject({ ok: true });
    expect((await ask({ [post.url]: to("https://[nonsense") })).text).toBe("it redirects to what is no address");
    expect((await ask({})).text).toMatch(/^it could not be reached, or .* broke/);
  });

  test("an abort throws the signal's reason", async () => {
    const controller = new AbortController();
    const asked = fetchOutgoing(post, {
      allowLoopback: false,
      signal: controller.signal,
      fetch: async () => {
        controller.abort(new Error("enough"));
        throw new Error("cut");
      },
    });
    await expect(asked).rejects.toThrow("enough");
  });
});
