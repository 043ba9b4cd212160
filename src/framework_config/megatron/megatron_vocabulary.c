/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_vocabulary.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_values.h"
#include "framework_config/common/published_model.h"
#include "model/model.h"
#include "model/model_file.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

bool
lh_config_megatron_pad_vocabulary(const LhConfig *c, LhMegatronShape *s, GError **error)
{
    static const char *const exact[] = { "padded-vocab-size", "pad-vocab-size-to" };
    uint64_t each = 128, tensor = 1, rows = 0, multiple; /* default of Megatron-LM */
    const char *type = "";

    for (guint i = 0; i < G_N_ELEMENTS(exact); i++) {
        if (!lh_config_count(c, exact[i], &rows, error))
            return false;
    }
    if (!lh_config_count(c, "make-vocab-size-divisible-by", &each, error) ||
        !lh_config_count(c, "tensor-model-parallel-size", &tensor, error) ||
        !lh_config_word(c, "tokenizer-type", &type, error))
        return false;
    if (rows > 0) {
        s->vocab = rows;
        return true;
    }
    if (strcmp(type, "NullTokenizer") == 0 && s->vocab > 0)
        s->vocab++; /* the end-of-document token */
    multiple = MAX(each, 1) * MAX(tensor, 1);
    if (multiple < UINT32_MAX)
        s->vocab = (s->vocab + multiple - 1) / multiple * multiple;
    return true;
}

void
lh_config_megatron_read_tokenizer(LhConfig *c, LhMegatronShape *s)
{
    static const struct {
        const char *type;
        uint64_t words;
    } types[] = { { "GPT2BPETokenizer", 50257 }, { "Llama2Tokenizer", 32000 } };
    static const char *const names[] = { "tokenizer-type", "tokenizer-model" };

    for (guint i = 0; i < G_N_ELEMENTS(names) && s->vocab == 0; i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, names[i]);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : g_strdup("");
        g_autofree char *name = lh_config_model_of(text);
        g_autofree char *shown = g_strescape(text, NULL);
        g_autoptr(LhModel) m = name != NULL ? lh_model_load(name, NULL) : NULL;

        for (guint k = 0; k < G_N_ELEMENTS(types); k++) {
            if (strcmp(text, types[k].type) == 0)
                s->vocab = types[k].words;
        }
        if (s->vocab == 0 && m != NULL)
            s->vocab = m->vocab_size;
        if (s->vocab != 0)
            lh_config_note(c, entry, "the vocabulary has the %" PRIu64 " words of %.60s", s->vocab,
                           shown);
    }
    if (s->vocab == 0 && lh_config_entry(c, "merge-file") != NULL &&
        lh_config_entry(c, "tokenizer-type") == NULL) {
        s->vocab = types[0].words;
        lh_config_note(c, lh_config_entry(c, "merge-file"),
                       "the vocabulary has the %" PRIu64 " words of %s", s->vocab, types[0].type);
    }
}
