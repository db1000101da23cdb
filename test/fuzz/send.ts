import { exports } from "cloudflare:workers";
import type { FuzzedRequest } from "./requests.ts";
import { marked, type Stage } from "./stage.ts";

const chunks = (bytes: Uint8Array): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => {
      for (let at = 0; at < bytes.length; at += 7 + (at % 900))
        controller.enqueue(bytes.slice(at, at + 7 + (at % 900)));
      controller.close();
    },
  });

const bytesOf = (text: string, how: "latin1" | "utf16"): Uint8Array =>
  Buffer.from(text, how === "latin1" ? "latin1" : "utf16le");

const bodyOf = (text: string, how: NonNullable<FuzzedRequest["body"]>["how"]): BodyInit => {
  if (how === "plain") return text;
  return how === "chunked" ? chunks(new TextEncoder().encode(text)) : bytesOf(text, how);
};

/** Sends a request as it is. Undefined where no client could: what is no header, or no body of this method. */
export const send = async (request: FuzzedRequest, stage: Stage): Promise<Response | undefined> => {
  const { method, path, bearer, headers, body } = request;
  const token = stage.bearers[bearer];
  let made: Request;
  try {
    made = new Request(`https://colloquy.test${marked(path, stage)}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, marked(value, stage)])),
      },
      ...(body === undefined || method === "GET" ? {} : { body: bodyOf(marked(body.text, stage), body.how) }),
      redirect: "manual",
    });
  } catch {
    return undefined;
  }
  return exports.default.fetch(made);
};
