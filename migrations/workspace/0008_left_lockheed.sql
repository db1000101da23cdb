ALTER TABLE `keys` ADD `name` text;--> statement-breakpoint
ALTER TABLE `keys` ADD `scopes` text DEFAULT '["full"]' NOT NULL;--> statement-breakpoint
ALTER TABLE `keys` ADD `last_used_at` integer;--> statement-breakpoint
ALTER TABLE `keys` ADD `expires_at` integer;--> statement-breakpoint
ALTER TABLE `keys` ADD `successor_id` text;