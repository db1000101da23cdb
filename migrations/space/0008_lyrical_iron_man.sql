ALTER TABLE `space` ADD `confidential_from` integer;--> statement-breakpoint
ALTER TABLE `space` ADD `release` text;--> statement-breakpoint
ALTER TABLE `subscribers` ADD `compartment_of` text;