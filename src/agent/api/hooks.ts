import { fault, faultOnceStored } from "../../shared/fault.ts";
import { acceptDelivery } from "../inbox/deliver.ts";
import type { Area } from "./agent-runtime.ts";

/** The agent's webhook addresses, and the deliveries that come by them. */
export const hooksArea: Area<"hooks" | "createHook" | "hook" | "updateHook" | "rotateHook" | "deleteHook" | "receive"> =
  {
    hooks: ({ services }) => services.hooks.list(),
    createHook: ({ services }, hook) => services.hooks.create(hook),
    hook: ({ services }, id) => services.hooks.get(id),
    updateHook: ({ services }, id, changes) => services.hooks.update(id, changes),
    rotateHook: ({ services }, id, rotation) => services.hooks.rotate(id, rotation),
    deleteHook: ({ services }, id) => {
      services.hooks.delete(id);
      return null;
    },
    receive: async ({ services, loop }, hookId, delivery) => {
      fault("hook.before-receive", services.object);
      const received = acceptDelivery(services, hookId, delivery);
      await faultOnceStored("hook.after-receive", services.object);
      loop.wake();
      return received;
    },
  };
