ALTER TABLE `entities` ADD `generation` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `keys` ADD `signs_in` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `sign_in_codes` ADD `key_id` text;