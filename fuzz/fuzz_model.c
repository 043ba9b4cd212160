/* SPDX-License-Identifier: Apache-2.0 */
/* Model files, longhaul's own and Hugging Face's. */
#include "fuzz.h"
#include "model/model.h"
#include "model/model_file.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhModel) model = lh_model_parse(FUZZ_NAME, (const char *)data, size, &error);

    fuzz_check_file(model != NULL, error);
    if (model == NULL)
        return 0;
    g_assert(model->sha256 != NULL);
    g_assert(model->num_layers >= 1);
    g_assert(lh_model_count(model, LH_LAYER_LINEAR) + lh_model_count(model, LH_LAYER_SOFTMAX) ==
             model->num_layers);
    g_assert(model->num_query_groups >= 1 && model->kv_channels >= 1);
    g_assert(model->num_attention_heads % model->num_query_groups == 0);
    g_assert(model->experts_per_token <= model->num_experts);
    return 0;
}
