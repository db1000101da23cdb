export { useBlock } from "./use-block.ts";
export { useSpace } from "./use-space.ts";
export { useSpaces } from "./use-spaces.ts";
