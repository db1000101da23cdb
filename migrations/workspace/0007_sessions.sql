CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`entity_id` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `sessions_entity` ON `sessions` (`entity_id`,`expires_at`);--> statement-breakpoint
ALTER TABLE `sign_in_codes` ADD `issuer` text;