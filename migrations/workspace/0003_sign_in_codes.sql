CREATE TABLE `sign_in_codes` (
	`hash` text PRIMARY KEY NOT NULL,
	`entity_id` text NOT NULL,
	`made_by` text,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `sign_in_codes_entity` ON `sign_in_codes` (`entity_id`);