import { createRoute, z } from "@hono/zod-openapi";
import { open } from "./access.ts";
import { createRoutes } from "./house.ts";
import { answers } from "./route-parts.ts";

export const healthz = createRoutes().openapi(
  createRoute({
    method: "get",
    path: "/healthz",
    tags: ["Deployment"],
    summary: "Whether the deployment answers",
    ...open,
    responses: { 200: answers(z.object({ ok: z.literal(true) }), "It does") },
  }),
  (context) => context.json({ ok: true as const }, 200),
);
