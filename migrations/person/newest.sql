CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', 1795850948849);
CREATE TABLE `notifications` (
	`cursor` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`space_id` text NOT NULL,
	`seq` integer NOT NULL,
	`notification` text NOT NULL
, `pushed` integer DEFAULT false NOT NULL);
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
CREATE TABLE `devices` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`endpoint` text NOT NULL,
	`keys` text NOT NULL,
	`origin` text NOT NULL,
	`push_key` text NOT NULL,
	`principal` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_push_at` integer
);
CREATE TABLE `jobs` (
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`payload` text,
	PRIMARY KEY(`kind`, `key`)
);
CREATE INDEX `jobs_due` ON `jobs` (`kind`,`due_at`);
CREATE TABLE `people` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`settings` text,
	`rests` integer DEFAULT false NOT NULL
);
CREATE TABLE `pushes` (
	`device_id` text NOT NULL,
	`topic` text NOT NULL,
	`ids` text NOT NULL,
	`due_at` integer NOT NULL,
	`until` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`device_id`, `topic`)
);
