CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', 1795838610475);
CREATE TABLE `notifications` (
	`cursor` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`space_id` text NOT NULL,
	`seq` integer NOT NULL,
	`notification` text NOT NULL
);
CREATE UNIQUE INDEX `notifications_id_unique` ON `notifications` (`id`);
CREATE TABLE `spaces` (
	`id` text PRIMARY KEY NOT NULL,
	`standing` text NOT NULL
);
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
);
