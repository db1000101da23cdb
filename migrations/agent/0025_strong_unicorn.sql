ALTER TABLE `blocks` ADD `confidential` text;--> statement-breakpoint
ALTER TABLE `shared_blocks` ADD `open` text;