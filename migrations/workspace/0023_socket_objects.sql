CREATE TABLE `socket_objects` (
	`id` text PRIMARY KEY NOT NULL,
	`proven_at` integer NOT NULL
);
