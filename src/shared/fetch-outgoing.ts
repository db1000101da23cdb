import { checkOutgoing } from "./outgoing.ts";

/**
 * Sends a request out, and follows its redirects by hand (S3).
 *
 * Invariants
 * 1. Every address is checked before it is asked, a redirect's too; none leads to loopback.
 * 2. The caller's own headers, and a body that must not be shared, go to no other origin than the one that the caller
 *    named. Nor does a secret that a server writes into the address that it redirects to.
 * 3. Once `fetch` was called, none of its errors proves that no server has the request. In workerd a closed port, and a
 *    reset before or after the request was read, are all "Network connection lost".
 */
export type OutgoingRequest = {
  method: string;
  url: string;
  headers: [string, string][];
  body?: string | Uint8Array<ArrayBuffer> | undefined;
};

export type OutgoingOptions = {
  fetch: typeof globalThis.fetch;
  /** The address that is named first may be loopback: in development only. */
  allowLoopback: boolean;
  signal: AbortSignal;
  /** The body holds what only the origin that is named first may know. */
  confidential?: boolean | undefined;
  /** Whether a text holds what only the origin that is named first may know. */
  holdsSecret?: ((text: string) => boolean) | undefined;
  /** A redirect is an answer like others. */
  isDirect?: boolean | undefined;
  /** People approved the origin that is named first: none other is asked. */
  approved?: boolean | undefined;
};

/**
 * `reason` follows "it could not be asked: "; it repeats nothing of the address. `taken`: a server other than the one
 * that answered, if one did, may have carried the request out.
 */
export type OutgoingAnswer = { taken: boolean } & ({ ok: true; response: Response } | { ok: false; reason: string });

export const maxRedirects = 5;

const redirecting = new Set([301, 302, 303, 307, 308]);
/** Headers that say nothing about the caller. */
const harmless = new Set(["accept", "accept-language", "content-type", "user-agent"]);

/** A redirect that does not ask for the same again says that what was asked is done; 301 and 302 are used for both. */
const maySayDone = (status: number): boolean => status <= 303;

/** The request after a redirect, as browsers make it: 303 turns to GET, and so do 301 and 302 after a POST. */
const redirected = (request: OutgoingRequest, status: number, url: string): OutgoingRequest => {
  const turnsToGet = status === 303 ? request.method !== "HEAD" : status <= 302 && request.method === "POST";
  if (!turnsToGet) return { ...request, url };
  const headers = request.headers.filter(([name]) => !/^content-/i.test(name));
  return { method: "GET", url, headers };
};

/** Throws the signal's reason where it was aborted, and nothing else: whatever goes wrong is told as a reason. */
export const fetchOutgoing = async (first: OutgoingRequest, options: OutgoingOptions): Promise<OutgoingAnswer> => {
  let request = first;
  let taken = false;
  const refused = (reason: string): OutgoingAnswer => ({ ok: false, reason, taken });
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const verdict = checkOutgoing(request.url, { allowLoopback: options.allowLoopback && redirects === 0 });
    if (!verdict.ok) return refused(redirects === 0 ? verdict.reason : `it redirects, and there ${verdict.reason}`);
    const { method, headers, body } = request;
    let response: Response;
    try {
      response = await options.fetch(request.url, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        redirect: "manual",
        signal: options.signal,
      });
    } catch {
      options.signal.throwIfAborted();
      taken = true;
      return refused("it could not be reached, or the connection broke before an answer came");
    }
    const target = !options.isDirect && redirecting.has(response.status) ? response.headers.get("location") : null;
    if (target === null) return { ok: true, response, taken };
    void response.body?.cancel().catch(() => undefined);
    taken ||= maySayDone(response.status);
    if (!URL.canParse(target, request.url)) return refused("it redirects to what is no address");
    const next = new URL(target, request.url);
    const leaves = next.origin !== verdict.url.origin;
    request = redirected(request, response.status, next.href);
    if (!leaves) continue;
    if (options.approved) return refused("it redirects to another origin than the one that people approved");
    if (options.confidential && request.body !== undefined) {
      return refused("it redirects to another origin, which must not read the body: a secret is in it");
    }
    const { holdsSecret = () => false } = options;
    // A URL parser writes hosts in small letters.
    if (holdsSecret(target) || holdsSecret(request.url)) {
      return refused("it redirects to another origin, which must not read the address: a secret is in it");
    }
    const isOpen = ([name, value]: [string, string]): boolean =>
      harmless.has(name.toLowerCase()) && !holdsSecret(value);
    request = { ...request, headers: request.headers.filter(isOpen) };
  }
  return refused(`it redirects more than ${maxRedirects} times (maxRedirects)`);
};
