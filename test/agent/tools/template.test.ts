import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderRequest, templateIssues } from "../../../src/agent/tools/configured/request-template.ts";
import { HttpTemplate } from "../../../src/protocol/tool.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";
import { secretNames } from "../../../src/shared/secret-places.ts";
import { refusal } from "../../support/refusal.ts";

const parse = (template: object) => HttpTemplate.parse({ url: "https://api.example.com/", ...template });

const issuesOf = (template: object, allowLoopback = false) => templateIssues(parse(template), { allowLoopback });

const parsed = (template: object) => {
  expect(issuesOf(template)).toEqual([]);
  return parse(template);
};

const render = (template: object, input: unknown, secrets: Record<string, string> = {}) =>
  renderRequest(parsed(template), { input, secrets: new Map(Object.entries(secrets)) });

describe("a template that is written down", () => {
  test.each<[string, object, string]>([
    ["a place in the host", { url: "https://{{input.host}}/" }, "url"],
    ["a place in a part of the host", { url: "https://a.{{input.host}}.com/" }, "url"],
    ["a place in the port", { url: "https://example.com:{{input.port}}/" }, "url"],
    ["a place as the whole URL", { url: "{{input.url}}" }, "url"],
    ["a place in the scheme", { url: "{{input.scheme}}://example.com/" }, "url"],
    ["a secret in the host", { url: `https://\${secret.A}/` }, "url"],
    ["a secret in the path", { url: `https://example.com/\${secret.A}` }, "url"],
    ["a place in a query's name", { url: "https://example.com/?{{input.a}}=1" }, "url"],
    ["a place in the fragment", { url: "https://example.com/#{{input.a}}" }, "url"],
    ["credentials", { url: "https://user:pass@example.com/{{input.a}}" }, "url"],
    ["a place as credentials", { url: `https://\${secret.A}@example.com/` }, "url"],
    ["plain http", { url: "http://example.com/" }, "url"],
    ["another scheme", { url: "file:///etc/passwd" }, "url"],
    ["a private address", { url: "https://10.0.0.1/{{input.a}}" }, "url"],
    ["metadata", { url: "https://169.254.169.254/latest" }, "url"],
    ["loopback", { url: "http://127.0.0.1:8080/" }, "url"],
    ["dots in the path", { url: "https://example.com/a/../b" }, "url"],
    ["encoded dots in the path", { url: "https://example.com/a/%2e%2E/b" }, "url"],
    ["a backslash", { url: "https://example.com\\@evil.example/" }, "url"],
    ["a line break", { url: "https://example.com/a\n/b" }, "url"],
    ["half a place", { url: "https://example.com/{{input.a" }, "url"],
    ["another place", { url: "https://example.com/?a={{env.HOME}}" }, "url"],
    ["a header's name that is none", { headers: { "X Y": "1" } }, "headers.X Y"],
    ["a header that is the connection's", { headers: { Host: "evil.example" } }, "headers.Host"],
    ["a line break in a header", { headers: { "X-A": "a\r\nX-B: b" } }, "headers.X-A"],
    ["a header that is there twice", { headers: { "X-A": "1", "x-a": "2" } }, "headers.x-a"],
    ["a slip in a secret's place", { headers: { "X-A": `\${secrets.A}` } }, "headers.X-A"],
    ["a place in a body's name", { body: { "{{input.a}}": 1 } }, "body"],
    ["a slip in a body", { body: { list: ["{{ inputs.a }}"] } }, "body.list.0"],
    ["a body of a GET", { method: "GET", body: {} }, "body"],
    ["a body that is too large", { body: "x".repeat(20_000) }, "body"],
    [
      "too many headers",
      { headers: Object.fromEntries([...Array(33).keys()].map((at) => [`x-${at}`, ""])) },
      "headers",
    ],
  ])("[S3][S4] %s is refused", (_, template, path) => {
    expect(issuesOf(template)).toContainEqual(expect.objectContaining({ path }));
  });

  test("[S3] loopback is for development only", () => {
    expect(issuesOf({ url: "http://127.0.0.1:8080/{{input.a}}" }, true)).toEqual([]);
    expect(issuesOf({ url: "http://192.168.0.1/" }, true)).not.toEqual([]);
  });

  test("the secrets that it needs are known beforehand", () => {
    const template = parsed({
      url: `https://example.com/?key=\${secret.QUERY}`,
      headers: { Authorization: `Bearer \${secret.KEY}` },
      body: { a: [`\${secret.BODY} \${secret.KEY}`] },
    });
    expect(secretNames(template)).toEqual(["QUERY", "KEY", "BODY"]);
    expect(secretNames(template.body)).toEqual(["BODY", "KEY"]);
  });
});

describe("a template that is filled in", () => {
  test("places are filled where they stand, each in its own way", () => {
    const request = render(
      {
        url: `https://api.example.com/v1/{{input.id}}/x-{{input.n}}?city={{input.city}}&key=\${secret.K}&flag`,
        headers: { Authorization: `Bearer \${secret.K}`, "X-City": "in {{ input.n }}" },
        body: {
          whole: "{{input.list}}",
          text: "In {{input.city}}: {{input.list}}",
          all: "{{input}}",
          n: "{{input.n}}",
          key: `\${secret.K}`,
        },
      },
      { id: "a/b?c#d", n: 5, city: "São Paulo & co", list: [1, { a: null }] },
      { K: "s3&cret" },
    );
    expect(request).toEqual({
      url: "https://api.example.com/v1/a%2Fb%3Fc%23d/x-5?city=S%C3%A3o%20Paulo%20%26%20co&key=s3%26cret&flag",
      headers: [
        ["Authorization", "Bearer s3&cret"],
        ["X-City", "in 5"],
      ],
      body: JSON.stringify({
        whole: [1, { a: null }],
        text: 'In São Paulo & co: [1,{"a":null}]',
        all: { id: "a/b?c#d", n: 5, city: "São Paulo & co", list: [1, { a: null }] },
        n: 5,
        key: "s3&cret",
      }),
    });
  });

  test("what is absent leaves out its parameter, header or property", () => {
    const request = render(
      {
        url: "https://api.example.com/?a={{input.a}}&b=x{{input.b}}&c=1",
        headers: { "X-A": "{{input.a}}" },
        body: { a: "{{input.a}}", b: "x{{input.b}}", list: ["{{input.a}}"], nothing: "{{input.nothing}}" },
      },
      { nothing: null },
    );
    expect(request).toEqual({
      url: "https://api.example.com/?b=x&c=1",
      headers: [],
      body: '{"b":"x","list":[null],"nothing":null}',
    });
  });

  test.each([["."], [".."], [""], [null], [undefined], [{}], [["a"]], ["\ud800"]])(
    "[S3][S4] %j is refused as a segment of the path",
    (id) => {
      const error = refusal(() => render({ url: "https://api.example.com/v1/{{input.id}}/x" }, { id }));
      expect(error.code).toBe("tool_input_invalid");
      expect(error.message).toContain("input.id");
    },
  );

  test("[S3] dots that only come together in the path are refused too", () => {
    for (const url of ["https://api.example.com/.{{input.a}}/x", "https://api.example.com/%2e{{input.a}}/x"]) {
      expect(refusal(() => render({ url }, { a: "." })).code).toBe("tool_input_invalid");
    }
  });

  test.each(["a\r\nX-Evil: 1", "a\nb", "a\0b", "tab\t", "ünïcode", "\u2028"])(
    "[S3][S4] %j is refused in a header",
    (value) => {
      expect(refusal(() => render({ headers: { "X-A": "v {{input.a}}" } }, { a: value })).code).toBe(
        "tool_input_invalid",
      );
      const error = refusal(() => render({ headers: { "X-A": `\${secret.KEY}` } }, {}, { KEY: `q7${value}` }));
      expect(error).toMatchObject({ code: "tool_misconfigured", message: expect.stringContaining('"KEY"') });
      expect(error.message).not.toContain("q7");
    },
  );

  test("[S3] a secret that is not there is named, and no other is shown", () => {
    const error = refusal(() => render({ body: [`\${secret.A}`, `\${secret.B}`] }, {}, { A: "hunter2" }));
    expect(error).toMatchObject({ code: "tool_misconfigured", message: expect.stringContaining('"B"') });
    expect(error.message).not.toContain("hunter2");
  });

  test("[S3] an input's own words are no places, and its prototype is no input", () => {
    const body = { a: "{{input.a}} {{input.constructor}} {{input.__proto__}} {{input.list.length}}" };
    expect(render({ body }, { a: `\${secret.K} {{input.b}}`, b: "B", list: [] }, { K: "s" }).body).toBe(
      `{"a":"\${secret.K} {{input.b}}   "}`,
    );
  });

  test("[S3] no input changes the host, or leaves its slot", () => {
    const template = parsed({
      url: "https://api.example.com:8443/v1/{{input.path}}/end?q={{input.query}}&last=1",
      headers: { "X-A": "a {{input.header}}" },
      body: { text: "{{input.path}}", inside: "<{{input.query}}>", last: true },
    });
    const evil = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom(...String.raw`/\.%2ef?#&=@:[ a`, ..."\r\n\t\u3002／") }),
      fc.constantFrom(...".. %2e%2e ../../admin //evil.example @evil.example a&last=2 a# a?b .%2e".split(" ")),
      fc.constant("\r\nX-Evil: 1"),
    );
    fc.assert(
      fc.property(evil, evil, evil, (path, query, header) => {
        let request: ReturnType<typeof renderRequest>;
        try {
          request = renderRequest(template, { input: { path, query, header }, secrets: new Map() });
        } catch (error) {
          if (error instanceof ColloquyError) return;
          throw error;
        }
        const url = new URL(request.url);
        expect(url.origin).toBe("https://api.example.com:8443");
        expect([url.username, url.password, url.hash]).toEqual(["", "", ""]);
        const segments = url.pathname.split("/");
        expect(segments).toHaveLength(4);
        expect([segments[1], segments[3]]).toEqual(["v1", "end"]);
        expect(decodeURIComponent(segments[2] ?? "")).toBe(path);
        expect([...url.searchParams]).toEqual([
          ["q", query],
          ["last", "1"],
        ]);
        expect(request.headers).toEqual([["X-A", `a ${header}`.trim()]]);
        expect(request.headers[0]?.[1]).toMatch(/^[\x20-\x7e]*$/);
        expect(JSON.parse(request.body ?? "")).toEqual({ text: path, inside: `<${query}>`, last: true });
      }),
      { numRuns: 1500 },
    );
  });

  test("[S4] whatever is written as a template is either refused in words or can be filled in", () => {
    const pieces = `https:// http:// a.example 10.0.0.1 / ? & = # : @ {{input.a}} \${secret.K} {{ \${ .. %2e x`;
    const piece = fc.constantFrom(...pieces.split(" "));
    fc.assert(
      fc.property(fc.string({ unit: piece, maxLength: 12 }), (rest) => {
        const template = { url: `https://a.example${rest}` };
        const issues = issuesOf(template);
        expect(issues.map(({ message }) => message)).not.toContain("");
        if (issues.length > 0) return;
        const { url } = renderRequest(parse(template), { input: { a: "v" }, secrets: new Map([["K", "s"]]) });
        expect(new URL(url).origin).toBe(new URL(template.url.split(/[/?]/).slice(0, 3).join("/")).origin);
      }),
      { numRuns: 1500 },
    );
  });
});
