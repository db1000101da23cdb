export const Wordmark = ({ size = "small" }: { size?: "small" | "large" }) => (
  <span className="wordmark" data-size={size}>
    <svg width={size === "large" ? 32 : 24} viewBox="0 0 32 32" aria-hidden="true">
      <path d="M12.5 4a9.5 9.5 0 0 1 8.9 6.2A10.5 10.5 0 0 0 11 20.5c0 .8.1 1.5.2 2.2A9.4 9.4 0 0 1 8.6 22L4 23.5l1.3-4.3A9.5 9.5 0 0 1 12.5 4Z" />
      <path d="M21 12a8 8 0 0 1 6.6 12.5L28.5 28l-3.7-1A8 8 0 1 1 21 12Z" />
    </svg>
    Colloquy
  </span>
);
