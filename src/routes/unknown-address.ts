import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { problem } from "../shared/errors.ts";
import type { House } from "./house.ts";
import { problemResponse } from "./problems.ts";

type Address = { pattern: RegExp; methods: Set<string> };

const addressesOf = (app: OpenAPIHono<House>): Address[] => {
  const byPath = new Map<string, Set<string>>();
  for (const definition of app.openAPIRegistry.definitions) {
    if (definition.type !== "route") continue;
    const { path, method } = definition.route;
    const methods = byPath.get(path) ?? new Set();
    methods.add(method.toUpperCase());
    if (method === "get") methods.add("HEAD");
    byPath.set(path, methods);
  }
  return [...byPath].map(([path, methods]) => ({
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
    methods,
  }));
};

/** What no route took: 405 with `Allow` where the address takes another method, else 404. */
export const unknownAddress = (app: OpenAPIHono<House>): ((context: Context) => Response) => {
  let addresses: Address[] | undefined;
  return (context) => {
    addresses ??= addressesOf(app);
    const { path, method } = context.req;
    const allowed = addresses.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]);
    if (allowed.length === 0) {
      return problemResponse(problem("not_found", `There is no address ${path}: see /docs for those there are.`));
    }
    const allow = [...new Set(allowed)].sort().join(", ");
    return problemResponse(problem("method_not_allowed", `${path} takes ${allow}, not ${method}.`), { allow });
  };
};
