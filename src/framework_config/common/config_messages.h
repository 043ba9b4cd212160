/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages about a configuration, with the line of the file: warnings, errors, and missing
 * settings.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Names and values in messages are cut to this length. */
#define LH_CONFIG_SHOWN "%.60s"

/* Part of the way of training that another file would state. */
typedef struct {
    const LhSettingsEntry *entry;
    unsigned part;     /* LhConfigParts */
    const char *field; /* of the scenario: may supply it */
    char *why;
} LhConfigLack;

/* Adds a warning about @entry, or about the whole file (NULL). */
void lh_config_note(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Sets @error at @entry; returns false. */
bool lh_config_fail(const LhConfig *config, const LhSettingsEntry *entry, GError **error,
                    const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Records what is missing of the model, as a half-sentence: "vocab-size is missing; add
 * --vocab-size N". An error only if nothing else names a model. */
void lh_config_lacks_model(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* The same for another field of the scenario: an error only if nothing else sets it. */
void lh_config_lacks(LhConfig *config, const LhSettingsEntry *entry, const char *field,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Records a default for a field, to be noted if nothing sets the field. */
void lh_config_unsaid(LhConfig *config, unsigned part, const char *field, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* "file:line:column" of an entry, or of the whole file; caller frees. */
char *lh_config_place(const LhConfig *config, const LhSettingsEntry *entry);

/* Frees an LhConfigLack *. */
void lh_config_lack_free(gpointer data);

/* Sets @error with the value of @entry and what is @allowed; returns false. */
bool lh_config_refuse(const LhConfig *config, const LhSettingsEntry *entry, const char *allowed,
                      GError **error);
