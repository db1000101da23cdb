import type { Clock } from "../../../shared/clock.ts";
import type { Env } from "../../../shared/env.ts";
import type { Ids } from "../../../shared/ids.ts";
import type { Identity } from "../../identity.ts";
import type { Spaces } from "../../spaces.ts";
import type { BlockShares } from "./block-shares.ts";
import type { BlockSpaces } from "./block-spaces.ts";
import type { BlockSubscriptions } from "./block-subscriptions.ts";
import type { Blocks } from "./blocks.ts";
import type { SharedBlocks } from "./shared-blocks.ts";

/** What the modules that callWithRetry an agent's blocks, and those shared with it, work with. */
export type BlockServices = {
  env: Env;
  ids: Ids;
  clock: Clock;
  identity: Identity;
  spaces: Spaces;
  blocks: Blocks;
  blockShares: BlockShares;
  blockSpaces: BlockSpaces;
  sharedBlocks: SharedBlocks;
  subscriptions: BlockSubscriptions;
};
