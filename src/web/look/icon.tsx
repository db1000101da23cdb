const paths = {
  send: "M4 11.5 20 4l-5 16.5-3.5-6.5L4 11.5Zm7.5 2.5L20 4",
  people:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Zm-6.5 9a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.2M18 14.3a6.5 6.5 0 0 1 3.5 5.7",
  plus: "M12 5v14M5 12h14",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm0-13v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4m0-12.8L17 7M7 17l-1.4 1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z",
  down: "M12 5v14m-6-6 6 6 6-6",
  up: "M12 19V5m-6 6 6-6 6 6",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "m6 6 12 12M18 6 6 18",
  lock: "M7 11V8a5 5 0 0 1 10 0v3M6.5 11h11a1.5 1.5 0 0 1 1.5 1.5v6a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 5 18.5v-6A1.5 1.5 0 0 1 6.5 11Zm5.5 3.5v2",
  leave: "M14 4h4a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-4M10 8l-4 4 4 4m-4-4h10",
  warning: "M12 4 2.5 20h19L12 4Zm0 6v4.5m0 2.5v.1",
  clock: "M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17ZM12 7.5V12l3 2",
  reply: "m9 7-5 5 5 5M4 12h10a6 6 0 0 1 6 6v1",
  notebook:
    "M6 3.5h11a1.5 1.5 0 0 1 1.5 1.5v14a1.5 1.5 0 0 1-1.5 1.5H6m0-17v17m0-17H5a1 1 0 0 0-1 1v15a1 1 0 0 0 1 1h1m4-12h4.5M10 12.5h4.5",
  back: "m14.5 6-6 6 6 6",
  undo: "M8 5 4 9l4 4M4 9h10a5.5 5.5 0 0 1 0 11h-3",
  bin: "M5 7h14M10 4h4M7 7l1 13h8l1-13M10.5 11v5.5m3-5.5v5.5",
  pencil: "m15.5 5 3.5 3.5L8.5 19H5v-3.5L15.5 5Z",
  sliders: "M4 7h9m4 0h3m-5 2a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM4 17h3m4 0h9M9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  bell: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15L6 16.5Zm4 4h4",
  muted: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15L6 16.5Zm4 4h4M4 3.5l16 17",
  tool: "M14.5 6.5a4 4 0 0 0-5.3 5.1L4 16.8 7.2 20l5.2-5.2a4 4 0 0 0 5.1-5.3L15 12l-3-3 2.5-2.5Z",
} as const;

export type IconName = keyof typeof paths;

/** Decoration only: the element that carries it has a name of its own. */
export const Icon = ({ name, size = 20 }: { name: IconName; size?: number }) => (
  <svg
    width={size}
    height={size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.75"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
  >
    <path d={paths[name]} />
  </svg>
);
