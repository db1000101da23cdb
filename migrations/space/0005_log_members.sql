DROP INDEX `log_joined`;--> statement-breakpoint
CREATE INDEX `log_members` ON `log` (`type`) WHERE type = 'member.joined' OR type = 'member.left';