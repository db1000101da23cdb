UPDATE `blocks` SET `archived` = '{"type":"working","pinned":false}'
	WHERE `type` = 'archival' AND `archived` IS NULL AND `label` IN (
		SELECT `made`.`value` ->> '$.input.label' FROM `journal`, json_each(`journal`.`meta`, '$.calls') `made`
		WHERE `journal`.`kind` = 'assistant' AND instr(`journal`.`meta`, '"block_archive"')
			AND `made`.`value` ->> '$.toolName' = 'block_archive'
	);--> statement-breakpoint
CREATE TABLE `__shown_as` AS
	WITH `deed` AS (
		SELECT `ref`, substr(`text`, 1, instr(`text`, ' ') - 1) AS `name`,
			CASE WHEN json_valid(substr(`text`, instr(`text`, ' '))) THEN substr(`text`, instr(`text`, ' ')) END AS `input`
		FROM `search_entries` WHERE `type` = 'consciousness' AND `role` = 'assistant' AND `part` = 0
			AND (`text` LIKE 'recall {%' OR `text` LIKE 'block_create {%' OR `text` LIKE 'block_edit {%')
	)
	SELECT `entry`.`id`, `name` || CASE WHEN `input` IS NULL THEN ''
			WHEN `name` = 'recall' THEN ' ' || json_object('op', `input` ->> '$.op')
			ELSE ' ' || json_object('label', `input` ->> '$.label') END AS `text`
		FROM `deed` JOIN `search_entries` `entry` ON `entry`.`ref` = `deed`.`ref` AND `entry`.`type` = 'consciousness'
		WHERE `input` ->> '$.op' IS NOT 'delete'
	UNION ALL SELECT `id`, CASE `part` WHEN 0 THEN (
			SELECT group_concat(`line`.`value`, char(10)) FROM `journal`, json_each(`journal`.`meta`, '$.lines') `line`
			WHERE `journal`.`seq` = CAST(substr(`ref`, instr(`ref`, ':') + 1) AS INTEGER)
				AND `line`.`value` NOT LIKE '[Tool result block\_edit, %' ESCAPE '\'
				AND `line`.`value` NOT LIKE '{"type":"tool\_result"%"tool":"block\_edit"%' ESCAPE '\'
				AND (`journal`.`seq` <= (SELECT `journal_up_to` FROM `imports`) OR `line`.`value` NOT LIKE '["%'
					AND `line`.`value` NOT LIKE '[answer to %' AND `line`.`value` NOT LIKE '{"type":"space\_message"%' ESCAPE '\')
		) END
		FROM `search_entries` WHERE `type` = 'consciousness' AND `role` = 'user' AND `ref` IN (
			SELECT `ref` FROM `search_entries` WHERE `type` = 'consciousness' AND `role` = 'user'
				AND (instr(`text`, '[Tool result block_edit, ') OR instr(`text`, '"tool":"block_edit"'))
		);--> statement-breakpoint
UPDATE `__shown_as` SET `text` = 'block_edit' WHERE `text` IS NULL;--> statement-breakpoint
INSERT INTO `search_words` (`search_words`, `rowid`, `head`, `text`)
	SELECT 'delete', `id`, `head`, `text` FROM `search_entries` WHERE `id` IN (SELECT `id` FROM `__shown_as`);--> statement-breakpoint
UPDATE `search_entries` SET `text` = `shown`.`text` FROM `__shown_as` `shown` WHERE `shown`.`id` = `search_entries`.`id`;--> statement-breakpoint
INSERT INTO `search_words` (`rowid`, `head`, `text`)
	SELECT `id`, `head`, `text` FROM `search_entries` WHERE `id` IN (SELECT `id` FROM `__shown_as`);--> statement-breakpoint
DROP TABLE `__shown_as`;
