/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/trainer/trainer_optimizer.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/trainer/trainer_names.h"
#include "model/framework_states.h"

#include <string.h>

/* Names as of github:huggingface/transformers src/transformers/training_args.py, OptimizerNames. */
typedef struct {
    const char *name;
    bool fused; /* one kernel; else PyTorch's, tensor by tensor */
    bool codes; /* moments in 8 bits */
    bool paged; /* states in memory that the driver moves to the host if the GPU has no room */
} Optimizer;

static const Optimizer optimizers[] = {
    { .name = "adamw_torch" },
    { .name = "adamw_hf" },
    { .name = "adamw_torch_fused", .fused = true },
    { .name = "adamw_apex_fused", .fused = true },
    { .name = "adamw_8bit", .fused = true, .codes = true },
    { .name = "adamw_bnb_8bit", .fused = true, .codes = true },
    { .name = "adamw_torch_8bit", .fused = true, .codes = true },
    { .name = "paged_adamw", .fused = true, .paged = true },
    { .name = "paged_adamw_32bit", .fused = true, .paged = true },
    { .name = "paged_adamw_8bit", .fused = true, .codes = true, .paged = true },
};

static const Optimizer *
find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(optimizers); i++) {
        if (strcmp(optimizers[i].name, name) == 0)
            return &optimizers[i];
    }
    return NULL;
}

static bool
refuse(const LhConfig *c, const char *setting, const char *found, GError **error)
{
    g_autoptr(GString) allowed = g_string_new(NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(optimizers); i++)
        g_string_append_printf(allowed, "%s%s", i > 0 ? ", " : "", optimizers[i].name);
    g_string_append(allowed, " (optimizers with the states of Adam)");
    return lh_config_trainer_refuse(c, setting, found, allowed->str, error);
}

/* One kernel reads gradient and states once and writes the states, without another tensor of their
 * size. FSDP casts fp32 weights where it gathers them. DeepSpeed has its own kernel. */
static void
set_fused(LhConfig *c)
{
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    double bytes;

    if (c->framework == NULL || strcmp(c->framework_name, "deepspeed") == 0)
        return;
    bytes = lh_framework_touched_bytes(c->framework) - (c->framework->states_master ? 2 : 0);
    lh_config_set_framework(c, "kernels.optimizer", g_ascii_dtostr(digits, sizeof(digits), bytes));
    lh_config_set_framework(c, "states.step_bytes_per_parameter", "0");
}

bool
lh_config_trainer_take_optimizer(LhConfig *c, GError **error)
{
    static const char *const settings[] = { "optim", "optimizer", NULL };
    const char *setting = lh_config_trainer_find_name(c, settings), *name = NULL;
    const Optimizer *optimizer;

    if (setting == NULL)
        return true;
    if (!lh_config_word(c, setting, &name, error))
        return false;
    optimizer = find(name);
    if (optimizer == NULL)
        return refuse(c, setting, name, error);
    if (optimizer->codes) {
        lh_config_set_framework(c, "states.moments", "8bit");
        lh_config_note(c, lh_config_entry(c, setting),
                       "not modelled: %s: moments of the embedding and of tensors with less than "
                       "4096 elements have 8 bits like the others, not fp32",
                       optimizer->name);
    }
    if (optimizer->paged)
        lh_config_note(c, lh_config_entry(c, setting), "not modelled: %s: states stay on the GPU",
                       optimizer->name);
    if (optimizer->fused)
        set_fused(c);
    return true;
}
