import { parse, serialize } from "hono/utils/cookie";
import { ColloquyError } from "../shared/errors.ts";
import { tokenPattern } from "./tokens.ts";

/**
 * The page's session: an entity's token in a cookie that no script reads and no other site's page sends (C14).
 *
 * Invariants
 * 1. A session counts only for requests of its own origin, scheme and port included. Browsers of today say where a request
 *    comes from; one that says nothing sends the cookie to its own site alone.
 * 2. Over https the cookie is `__Host-`: no subdomain can set it, and it never goes out in the clear.
 */
const name = "colloquy_session";
const secureName = `__Host-${name}`;

/**
 * The origin under which browsers reach this deployment: `PUBLIC_ORIGIN`, else the request's own. `X-Forwarded-Proto` can
 * only make it https: that is stricter, so whoever forges it harms nobody.
 */
export const ownOrigin = ({ url, headers }: Request, publicOrigin: string | undefined): string => {
  const { origin, href } = URL.parse(publicOrigin || url) ?? { origin: "", href: "" };
  if (!publicOrigin) return isForwardedHttps(headers) ? origin.replace(/^http:/, "https:") : origin;
  if (/^https?:/.test(origin) && href === `${origin}/`) return origin;
  const detail = "PUBLIC_ORIGIN is no origin: set it to one such as https://colloquy.example.com.";
  throw new ColloquyError("internal", detail);
};

const isForwardedHttps = (headers: Headers): boolean => /^https\b/i.test(headers.get("x-forwarded-proto") ?? "");

/** Whether browsers reach this deployment over https, so that they may be told to do nothing else. */
export const isOverHttps = ({ url, headers }: Request, publicOrigin: string | undefined): boolean =>
  url.startsWith("https:") || isForwardedHttps(headers) || /^https:/i.test(publicOrigin ?? "");

/** The token in the request's cookie, not yet verified. Over https the other name may be a subdomain's. */
export const sessionToken = (request: Request, publicOrigin: string | undefined): string | undefined => {
  const cookies = parse(request.headers.get("cookie") ?? "");
  const token = cookies[isOverHttps(request, publicOrigin) ? secureName : name];
  return token !== undefined && tokenPattern.test(token) ? token : undefined;
};

/** The page shows one person, and the browser's session is another's, who signed in in another tab. */
export const sessionOfAnother = (): ColloquyError =>
  new ColloquyError("signed_in", "This browser is signed in as somebody else by now. Nothing was done.");

/** Throws `foreign_origin` where a browser says that another origin's page makes the request. */
export const requireOwnOrigin = (request: Request, publicOrigin: string | undefined): void => {
  const origin = request.headers.get("origin");
  const site = request.headers.get("sec-fetch-site") ?? "none";
  const isOwn = origin === null || origin === ownOrigin(request, publicOrigin);
  if (isOwn && (site === "same-origin" || site === "none")) return;
  throw new ColloquyError(
    "foreign_origin",
    "A session is for its own page: from another origin, send Authorization: Bearer with a token. Behind a proxy, the operator sets PUBLIC_ORIGIN to the page's.",
  );
};

/** The `Set-Cookie` that begins a session, or ends it. */
export const sessionCookie = (secure: boolean, token: string, maxAge: number): string => {
  const options = { path: "/", httpOnly: true, sameSite: "Strict", secure, maxAge } as const;
  return serialize(secure ? secureName : name, token, options);
};
