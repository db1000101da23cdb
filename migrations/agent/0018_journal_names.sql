CREATE TABLE `journal_names` (
	`part` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER `journal_names_added` AFTER INSERT ON `journal` BEGIN
	INSERT OR IGNORE INTO `journal_names` (`part`, `seq`)
	SELECT substr(`value`, -34, 26), new.`seq` FROM json_each(new.`meta`, '$.eventIds')
	UNION ALL SELECT substr(`value` ->> '$.callId', -34, 26), new.`seq` FROM json_each(new.`meta`, '$.calls')
	UNION ALL SELECT substr(new.`content` ->> '$.content[0].output.value.messageId', -34, 26), new.`seq` WHERE new.`kind` = 'result';
END;
--> statement-breakpoint
INSERT OR IGNORE INTO `journal_names` (`part`, `seq`)
SELECT substr(`value`, -34, 26), `seq` FROM `journal`, json_each(`meta`, '$.eventIds')
UNION ALL SELECT substr(`value` ->> '$.callId', -34, 26), `seq` FROM `journal`, json_each(`meta`, '$.calls')
UNION ALL SELECT substr(`content` ->> '$.content[0].output.value.messageId', -34, 26), `seq` FROM `journal` WHERE `kind` = 'result'
ORDER BY 2;
